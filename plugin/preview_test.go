package plugin

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
	"tkestack.io/tapp/plan/view"
)

func TestBudget(t *testing.T) {
	number, percent := intstr.FromInt32, intstr.FromString
	for _, c := range []struct {
		rolling, forced  intstr.IntOrString
		edit             func(*tappv1.TApp)
		rollings, forces string
		atMost           [2]int
	}{
		{number(1), percent("100%"), nil, "1", "10 (100% of 10)", [2]int{1, 10}},
		{percent("25%"), number(20), nil, "3 (25% of 10)", "20", [2]int{3, 20}},
		{percent("1%"), number(0), nil, "1 (1% of 10)", "none (0 is no budget)", [2]int{1, 0}},
		{percent("0%"), percent("all"), nil, "none (0% is no budget)", "none (all is no budget)", [2]int{}},
		{percent("50%"), number(1), func(t *tappv1.TApp) {
			t.Spec.Statuses = map[string]tappv1.InstanceStatus{"0": tappv1.InstanceKilled, "1": tappv1.InstanceKilled, "12": tappv1.InstanceKilled}
		}, "4 (50% of 8)", "1", [2]int{4, 1}},
		// What a budget is does not depend on whether the rolling template exists.
		{number(2), number(3), func(t *tappv1.TApp) { t.Spec.UpdateStrategy.Template = "lost" }, "2", "3", [2]int{2, 3}},
	} {
		tapp := webTApp(10, withBudgets(c.rolling, c.forced))
		if c.edit != nil {
			c.edit(tapp)
		}
		o := observe(t, tapp)
		rolling, forced := o.BudgetOf(false), o.BudgetOf(true)
		if rolling.String() != c.rollings || forced.String() != c.forces || rolling.MaxUnavailable != c.atMost[0] || forced.MaxUnavailable != c.atMost[1] {
			t.Errorf("budgets are %q and %q (%d and %d), want %q and %q (%v)", rolling, forced, rolling.MaxUnavailable, forced.MaxUnavailable, c.rollings, c.forces, c.atMost)
		}
	}
}

// TestPreview: the whole text of a preview in which everything happens that can.
func TestPreview(t *testing.T) {
	before := webTApp(6, withBudgets(intstr.FromString("50%"), intstr.FromInt32(1)), func(t *tappv1.TApp) {
		t.Spec.Templates = map[string]string{"3": "canary"}
	})
	after := before.DeepCopy()
	after.Spec.Replicas = new(int32(5))
	after.Spec.Template = templateOf("web:2")
	after.Spec.TemplatePool["canary"] = templateOf("canary:2")
	after.Spec.Statuses = map[string]tappv1.InstanceStatus{"1": tappv1.InstanceKilled}
	o := observe(t, after, podOf(before, "default", 0), podOf(before, "default", 1), podOf(before, "default", 2, notReady),
		podOf(before, "canary", 3), podOf(before, "default", 5))
	v, err := newPreview(o, before)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	v.print(&b, false)
	const want = `tapp.apps.tkestack.io/web would change
  spec.replicas: 6 -> 5
  spec.statuses[1]: <none> -> Killed
  spec.template.spec.containers[web].image: web:1 -> web:2
  spec.templatePool[canary].spec.containers[web].image: canary:1 -> canary:2

In this order:
  1. 1 instance is killed (1): spec.statuses says Killed
  2. 1 instance is created (4): the instance has no pod
  3. 1 instance is removed (5): spec.replicas is 5
  4. 1 instance is updated in place (3): image of web from canary:1 to canary:2; by force, at most 1 at a time
  5. 2 instances are updated in place (0,2): image of web from web:1 to web:2; rolling, at most 2 (50% of 4) at a time, but 2 at once, since they do not serve
  Note: 1 of 4 instances does not follow the change of spec.template, and stays on "canary" (3)

First, as things are now:
  Delete 1 (Killed): spec.statuses says Killed
  Drain 2 (ImageChanged): image of web from web:1 to web:2
  Create 4 (PodMissing): the instance has no pod
  Delete 5 (ScaledDown): spec.replicas is 5
`
	if b.String() != want {
		t.Errorf("it is\n%s\nand should be\n%s", b.String(), want)
	}
	if !v.ChangesSomething() {
		t.Error("it changes nothing")
	}
}

func TestPreviewHeadlines(t *testing.T) {
	stored := webTApp(1)
	running := podOf(stored, "default", 0)
	for _, c := range []struct {
		name          string
		before, after *tappv1.TApp
		pods          []*corev1.Pod
		want          string
		changes       bool
	}{
		{"nothing", stored, stored, []*corev1.Pod{running}, "tapp.apps.tkestack.io/web: nothing would change\n", false},
		{"new", nil, webTApp(0), nil, "tapp.apps.tkestack.io/web would be created\n", true},
		{"new, with pods of an earlier one", nil, webTApp(3, withImage("web:2")),
			[]*corev1.Pod{podOf(stored, "default", 0, orphaned), podOf(stored, "default", 1, orphaned), podOf(stored, "default", 2, orphaned, notReady)},
			"tapp.apps.tkestack.io/web would be created\n\n" +
				"In this order:\n  1. 3 instances are updated in place (0-2): image of web from web:1 to web:2; rolling, at most 1 at a time, but 2 at once, since they do not serve\n\n" +
				"First, as things are now:\n  Adopt 0-2 (PodWithoutController): the pod has no controller, and has the name and the labels of the instance\n", true},
		{"left to do", stored, stored, nil, "tapp.apps.tkestack.io/web: the spec stays as it is, and this is left to do\n\n" +
			"In this order:\n  1. 1 instance is created (0): the instance has no pod\n\n" +
			"First, as things are now:\n  Create 0 (PodMissing): the instance has no pod\n", true},
		{"paused", stored, webTApp(1, withImage("web:2"), func(t *tappv1.TApp) { t.Spec.Paused = true }), []*corev1.Pod{running},
			"tapp.apps.tkestack.io/web would change\n  spec.paused: <none> -> true\n  spec.template.spec.containers[web].image: web:1 -> web:2\n\n" +
				"In this order:\n  1. 1 instance is updated in place (0): image of web from web:1 to web:2; rolling, at most 1 at a time\n" +
				"  Updates wait until spec.paused is false.\n", true},
		{"not serving", webTApp(1, withImage("web:2")), webTApp(1, withImage("web:2")), []*corev1.Pod{podOf(stored, "default", 0, notReady)},
			"tapp.apps.tkestack.io/web: the spec stays as it is, and this is left to do\n\n" +
				"In this order:\n  1. 1 instance is updated in place (0): image of web from web:1 to web:2; at once, since they do not serve\n\n" +
				"First, as things are now:\n  Drain 0 (ImageChanged): image of web from web:1 to web:2\n", true},
		{"a problem", webTApp(0, withLostTemplate), webTApp(0, withLostTemplate), nil, "tapp.apps.tkestack.io/web: nothing would change\n\n" +
			"What the controller cannot do:\n  spec.updateStrategy.template: there is no template \"lost\"; no update starts until spec.templatePool has it, " +
			"or the field names another one (there are: default, canary)\n", false},
	} {
		v, err := newPreview(observe(t, c.after, c.pods...), c.before)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		v.print(&b, false)
		if b.String() != c.want || v.ChangesSomething() != c.changes {
			t.Errorf("%s: changes %t, it is\n%s\nand should be\n%s", c.name, v.ChangesSomething(), b.String(), c.want)
		}
	}
}

func withLostTemplate(t *tappv1.TApp) { t.Spec.UpdateStrategy.Template = "lost" }

// TestHeldIsNoChange: what InPlaceOnly forbids is told, and is nothing that happens.
func TestHeldIsNoChange(t *testing.T) {
	stored := webTApp(2)
	changed := webTApp(2, func(t *tappv1.TApp) {
		t.Spec.Template.Spec.Containers[0].Args = []string{"now"}
		t.Spec.UpdateStrategy.InPlaceUpdate.Policy = tappv1.InPlaceOnly
	})
	v, err := newPreview(observe(t, changed, podOf(stored, "default", 0), podOf(stored, "default", 1)), changed)
	if err != nil {
		t.Fatal(err)
	}
	if len(v.Steps) != 1 || v.Steps[0].Phase != view.Held || !slices.Equal(v.Steps[0].IDs, []int{0, 1}) || v.Steps[0].Budget != "" || v.ChangesSomething() {
		t.Errorf("steps %+v, changes something: %t", v.Steps, v.ChangesSomething())
	}
}

func TestPolicyOf(t *testing.T) {
	for _, c := range []struct {
		data map[string]string
		want plan.Policy
		err  string
	}{
		{map[string]string{"policy.json": `{"deletePodAfterAppFinish":true,"nodeLostAfter":"5m0s","resize":true}`},
			plan.Policy{DeletePodAfterAppFinish: true, NodeLostAfter: 300e9, Resize: true}, ""},
		{map[string]string{"policy.json": `{"nodeLostAfter":"30s","fromTheFuture":1}`}, plan.Policy{NodeLostAfter: 30e9}, ""},
		{nil, plan.Policy{}, `configmaps "tapp-policy" has no key "policy.json"`},
		{map[string]string{"policy.json": ""}, plan.Policy{}, `configmaps "tapp-policy", key "policy.json": unexpected end of JSON input`},
		{map[string]string{"policy.json": `{"nodeLostAfter":"soon"}`}, plan.Policy{},
			`configmaps "tapp-policy", key "policy.json": time: invalid duration "soon"`},
	} {
		got, err := policyOf(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: tappv1.PolicyConfigMap}, Data: c.data})
		if got != c.want || text(err) != c.err {
			t.Errorf("%v: %+v, %v", c.data, got, err)
		}
	}
}

// TestPolicyNote: a policy that is not known is told of only if it decides.
func TestPolicyNote(t *testing.T) {
	unknown := policy{Policy: plan.Policy{DeletePodAfterAppFinish: true}, unknown: errors.New("cannot read it")}
	tapp := webTApp(2, func(t *tappv1.TApp) {
		t.Status.Statuses = map[string]tappv1.InstanceStatus{"0": tappv1.InstanceFailed, "1": tappv1.InstanceRunning}
	})
	ended, runs := podOf(tapp, "default", 0, failed), podOf(tapp, "default", 1)
	const note = "Note: cannot read it; assuming --delete-pod-after-app-finish=true, the default. See --controller-namespace."
	for _, c := range []struct {
		name   string
		policy policy
		pods   []*corev1.Pod
		// all is the note of a plan, one that of instance 1.
		all, one string
	}{
		{"known", policy{Policy: unknown.Policy}, []*corev1.Pod{ended, runs}, "", ""},
		{"one ended", unknown, []*corev1.Pod{ended, runs}, note, ""},
		{"none ended", unknown, []*corev1.Pod{podOf(tapp, "default", 0), runs}, "", ""},
		{"all ended", unknown, []*corev1.Pod{ended, podOf(tapp, "default", 1, failed)}, "", ""},
	} {
		o := observeBy(t, c.policy, tapp, c.pods...)
		all, one := o.policyNote(o.Plan.Instances), o.policyNote([]plan.Instance{*o.Instance(1)})
		if all != c.all || one != c.one {
			t.Errorf("%s: %q and %q", c.name, all, one)
		}
	}
}

// TestNotes: how many serving instances forced updates take at once, and who does not
// follow a change of spec.template. (tkestack/tke#993, openkruise/kruise-game#111)
func TestNotes(t *testing.T) {
	zones := func(t *tappv1.TApp) {
		t.Spec.TemplatePool["zone-a"], t.Spec.TemplatePool["zone-b"] = templateOf("game:1"), templateOf("game:1")
		t.Spec.Templates = map[string]string{"0": "zone-a", "1": "zone-a", "2": "zone-a", "3": "zone-a", "4": "zone-b", "5": "zone-b"}
	}
	pool := func(name, image string) func(*tappv1.TApp) {
		return func(t *tappv1.TApp) { t.Spec.TemplatePool[name] = templateOf(image) }
	}
	for name, c := range map[string]struct {
		before, after *tappv1.TApp
		down          []int // instances that are not Ready
		want          []string
	}{
		"a zone by force": {webTApp(6, zones), webTApp(6, zones, pool("zone-a", "game:2")), nil,
			[]string{`4 of 6 instances at once (of 0-3): spec.updateStrategy.forceUpdate.maxUnavailable is 100%, and they do not use the template that rolls, "default"`}},
		"a budget for it": {webTApp(6, zones), webTApp(6, zones, pool("zone-a", "game:2"), withBudgets(intstr.FromInt32(1), intstr.FromInt32(2))), nil,
			[]string{`2 of 6 instances at once (of 0-3): spec.updateStrategy.forceUpdate.maxUnavailable is 2, and they do not use the template that rolls, "default"`}},
		"one at a time": {webTApp(6, zones), webTApp(6, zones, pool("zone-a", "game:2"), withBudgets(intstr.FromInt32(1), intstr.FromInt32(1))), nil, nil},
		"who is down is not interrupted": {webTApp(6, zones), webTApp(6, zones, pool("zone-a", "game:2")), []int{1, 2},
			[]string{`2 of 6 instances at once (of 0,3): spec.updateStrategy.forceUpdate.maxUnavailable is 100%, and they do not use the template that rolls, "default"`}},
		"spec.template, which nobody uses": {webTApp(6, zones), webTApp(6, zones, withImage("web:2")), nil,
			[]string{`6 of 6 instances do not follow the change of spec.template, and stay on "zone-a" (0-3), "zone-b" (4-5)`}},
		"spec.template, and one is a canary": {webTApp(3, withOwn("0", "canary")), webTApp(3, withOwn("0", "canary"), withImage("web:2")), nil,
			[]string{`1 of 3 instances does not follow the change of spec.template, and stays on "canary" (0)`}},
		"all follow":      {webTApp(3), webTApp(3, withImage("web:2")), nil, nil},
		"nothing changes": {webTApp(6, zones), webTApp(6, zones), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var pods []*corev1.Pod
			for id := range int(*c.before.Spec.Replicas) {
				template := cmp.Or(c.before.Spec.Templates[strconv.Itoa(id)], "default")
				if slices.Contains(c.down, id) {
					pods = append(pods, podOf(c.before, template, id, notReady))
					continue
				}
				pods = append(pods, podOf(c.before, template, id))
			}
			v, err := newPreview(observe(t, c.after, pods...), c.before)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(v.Notes, c.want) {
				t.Errorf("it notes\n%q\nand should note\n%q", v.Notes, c.want)
			}
		})
	}
}

func withOwn(id, template string) func(*tappv1.TApp) {
	return func(t *tappv1.TApp) { t.Spec.Templates = map[string]string{id: template} }
}
