package plugin

import (
	"bytes"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
	"tkestack.io/tapp/plan/view"
)

// TestExplain: the whole text about an instance, but for its hashes.
func TestExplain(t *testing.T) {
	stored := webTApp(4)
	tapp := webTApp(3, withImage("web:2"), func(t *tappv1.TApp) {
		t.Spec.Paused = true
		t.Spec.Templates = map[string]string{"1": "canary", "2": "lost"}
		t.Spec.Statuses = map[string]tappv1.InstanceStatus{"1": tappv1.InstanceKilled}
		t.Status.Statuses = map[string]tappv1.InstanceStatus{"2": tappv1.InstanceFailed}
	})
	o := observe(t, tapp, podOf(stored, "default", 0), podOf(stored, "default", 3, notReady, func(pod *corev1.Pod) {
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "setup", Image: "setup:1", Ready: true,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}}}
	}))
	for id, want := range map[int]string{
		0: `Instance:       0 of web in namespace shop
Wanted:         running
State:          Running for 60m
Available:      yes
Template:       default, hash #, uniq hash #
Updates:        rolling, at most 1 at a time
Pod:            web-0 on node node-1, IP 10.0.0.1, UID uid of web-0
Pod's template: hash #, uniq hash #: it differs in images, labels or annotations only
Container:      web runs web:1: running, ready, restarts 0
Held:           Paused: spec.paused is true, and no update starts
Rollout:        1 instance is updated in place (0): image of web from web:1 to web:2
`,
		1: `Instance:       1 of web in namespace shop
Wanted:         stopped: spec.statuses says Killed
State:          Killed
Available:      no
Template:       canary, hash #, uniq hash #
Updates:        by force, at most 1 (100% of 1) at a time
Pod:            <none>
Next:           nothing: it is where the spec wants it
`,
		2: `Instance:       2 of web in namespace shop
Wanted:         as it ended
State:          Failed
Available:      no
Template:       lost, hash <none>, uniq hash <none>
Updates:        by force, at most 1 (100% of 1) at a time
Pod:            <none>
Held:           TemplateMissing: there is no template "lost"; add it to spec.templatePool, or name another one (there are: default, canary)
`,
		3: `Instance:       3 of web in namespace shop
Wanted:         gone: spec.replicas is 3
State:          Pending for 60m
Available:      no
Template:       default, hash #, uniq hash #
Updates:        rolling, at most 1 at a time
Pod:            web-3 on node node-1, IP 10.0.0.1, UID uid of web-3
Pod's template: hash #, uniq hash #: it differs in images, labels or annotations only
Container:      setup runs setup:1: ended with exit code 0: Completed, restarts 0
Container:      web runs web:1: running, not ready, restarts 0
Next:           Delete, ScaledDown: spec.replicas is 3
Rollout:        1 instance is removed (3): spec.replicas is 3
`,
	} {
		want += "Problem:        spec.templates[2]: there is no template \"lost\"; add it to spec.templatePool, or name another one (there are: default, canary)\n"
		x := o.explain(o.Instance(id))
		var out bytes.Buffer
		if err := x.print(&environment{streams: Streams{Out: &out}}); err != nil {
			t.Fatal(err)
		}
		got := out.String()
		for _, hash := range []string{x.TemplateHash, x.UniqHash, x.PodTemplateHash, x.PodUniqHash} {
			if hash != "" {
				got = strings.ReplaceAll(got, hash, "#")
			}
		}
		if got != want {
			t.Errorf("it is\n%s\nand should be\n%s", got, want)
		}
	}
}

// TestExplainInitImages: an instance that runs a mix is told.
func TestExplainInitImages(t *testing.T) {
	var out bytes.Buffer
	x := explanation{Instance: view.Instance{Pod: "web-0"}, InitImages: "init container setup ran setup:1 and not setup:2"}
	if err := x.print(&environment{streams: Streams{Out: &out}}); err != nil {
		t.Fatal(err)
	}
	if want := "Init images:    init container setup ran setup:1 and not setup:2 until the instance has another pod\n"; !strings.Contains(out.String(), want) {
		t.Errorf("it is\n%s", out.String())
	}
}

// TestExplainDiffers: labels and annotations that somebody changed are told of a pod that follows
// its template, and not where its update brings others.
func TestExplainDiffers(t *testing.T) {
	tapp := webTApp(2, func(t *tappv1.TApp) { t.Spec.Template.Labels["tier"] = "silver" })
	gold := func(pod *corev1.Pod) { pod.Labels["tier"] = "gold" }
	old := podOf(webTApp(2, func(t *tappv1.TApp) { t.Spec.Template.Labels["tier"] = "bronze" }), "default", 1)
	tapp.SetGroupVersionKind(tappv1.GroupVersionKind())
	serve(t, map[string]any{tappsPath + "/web": tapp, podsPath: podList(podOf(tapp, "default", 0, gold), old)})
	const differs = "Differs:        label tier is \"gold\", its template says \"silver\"\n"
	for id, want := range map[string]bool{"0": true, "1": false} {
		if code, out, errOut := run(t, program, "explain", "web", id); code != 0 || strings.Contains(out, differs) != want || strings.Contains(out, "Differs") != want {
			t.Errorf("instance %s: exit code %d, errors %q, printed\n%s", id, code, errOut, out)
		}
	}
}

func TestFollows(t *testing.T) {
	for want, x := range map[string]explanation{
		"it follows its template":                                {Instance: view.Instance{Current: true}, UniqHash: "a", PodUniqHash: "b"},
		"it differs in images, labels or annotations only":       {UniqHash: "a", PodUniqHash: "a"},
		"it differs in more than images, labels and annotations": {UniqHash: "a", PodUniqHash: "b"},
	} {
		if got := x.follows(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestStateOfContainer(t *testing.T) {
	for want, c := range map[string]corev1.ContainerStatus{
		"waiting: ContainerCreating": {State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}},
		"waiting: ImagePullBackOff, Back-off pulling": {State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "Back-off pulling"}}},
		"waiting: ": {State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}},
		"ended with exit code 137: OOMKilled": {State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}}},
		"running, ready":     {Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		"running, not ready": {State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		"unknown":            {},
	} {
		if got := stateOf(&c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestSince: what tells when a pod came to the state of its instance.
func TestSince(t *testing.T) {
	at := func(minute int) metav1.Time {
		return metav1.NewTime(time.Date(2026, 11, 23, 12, minute, 0, 0, time.UTC))
	}
	at20 := at(20)
	pod := func(edit func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(1)}}
		p.Status.Conditions = []corev1.PodCondition{
			{Type: tappv1.GateInPlaceUpdate, Status: corev1.ConditionFalse, LastTransitionTime: at(3)},
			{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: at(5)},
		}
		p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: tappv1.GateInPlaceUpdate}}
		if edit != nil {
			edit(p)
		}
		return p
	}
	ended := func(minutes ...int) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			for _, minute := range minutes {
				p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
					State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: at(minute)}}})
			}
		}
	}
	for _, c := range []struct {
		name   string
		status tappv1.InstanceStatus
		pod    *corev1.Pod
		minute int
	}{
		{"became ready", tappv1.InstanceRunning, pod(nil), 5},
		{"has no condition yet", tappv1.InstancePending, pod(func(p *corev1.Pod) { p.Status.Conditions = nil }), 1},
		{"gate closed", tappv1.InstanceUpdating, pod(nil), 3},
		{"updates without a gate", tappv1.InstanceUpdating, pod(func(p *corev1.Pod) { p.Spec.ReadinessGates, p.Status.Conditions = nil, p.Status.Conditions[1:] }), 5},
		{"deleted, the grace period before its end", tappv1.InstanceKilling,
			pod(func(p *corev1.Pod) { p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &at20, new(int64(600)) }), 10},
		{"deleted without a grace period", tappv1.InstanceKilling, pod(func(p *corev1.Pod) { p.DeletionTimestamp = &at20 }), 20},
		{"to be deleted", tappv1.InstanceKilling, pod(nil), 5},
		{"the last container ended", tappv1.InstanceFailed, pod(ended(7, 9, 8)), 9},
		{"rejected, without containers", tappv1.InstancePodFailed, pod(nil), 5},
	} {
		if got := view.Since(&plan.Instance{Status: c.status, Pod: c.pod}); got == nil || got.Minute() != c.minute {
			t.Errorf("%s: %v, want minute %d", c.name, got, c.minute)
		}
	}
}

func TestAge(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for want, at := range map[string]*metav1.Time{
		"<none>": nil, "90s": {Time: now.Add(-90 * time.Second)}, "4d": {Time: now.Add(-96 * time.Hour)},
	} {
		if got := age(at, now); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := age(&metav1.Time{}, now); got != "<none>" {
		t.Errorf("%q", got)
	}
}

// TestGrid: the columns that a list of instances has.
func TestGrid(t *testing.T) {
	stored := webTApp(2)
	tapp := webTApp(2, func(t *tappv1.TApp) { t.Spec.Templates = map[string]string{"1": "canary"} })
	o := observe(t, tapp, podOf(stored, "default", 0, func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = 3 }))
	var views []view.Instance
	for i := range o.Plan.Instances {
		views = append(views, o.View(&o.Plan.Instances[i]))
	}
	for _, c := range []struct {
		name   string
		output string
		all    bool
		one    bool
		want   string
	}{
		{"one TApp", "", false, true, "" +
			"ID   TEMPLATE   IMAGE    NODE     STATE        SINCE    REASON\n" +
			"0    default    web:1    node-1   Running      60m\n" +
			"1    canary     <none>   <none>   NotCreated   <none>   PodMissing\n"},
		{"of all namespaces", "", true, false, "" +
			"NAMESPACE   TAPP   ID   TEMPLATE   IMAGE    NODE     STATE        SINCE    REASON\n" +
			"shop        web    0    default    web:1    node-1   Running      60m\n" +
			"shop        web    1    canary     <none>   <none>   NotCreated   <none>   PodMissing\n"},
		{"wide", "wide", false, false, "" +
			"TAPP   ID   TEMPLATE   IMAGE    NODE     STATE        SINCE    REASON       CURRENT   AVAILABLE   RESTARTS   IP         WHY\n" +
			"web    0    default    web:1    node-1   Running      60m      <none>       yes       yes         3          10.0.0.1\n" +
			"web    1    canary     <none>   <none>   NotCreated   <none>   PodMissing   no        no          0          <none>     the instance has no pod\n"},
	} {
		var out strings.Builder
		if err := (&get{output: c.output, all: c.all}).grid(views, c.one).print(&out, false); err != nil || out.String() != c.want {
			t.Errorf("%s: %v, it is\n%s\nand should be\n%s", c.name, err, out.String(), c.want)
		}
	}
}
