package tapp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
	"tkestack.io/tapp/webhook/review"
)

// verdict of a validator in words: the message of a denial, and the warnings.
func verdictOf(t *testing.T, v *Validator, object, old []byte) string {
	t.Helper()
	a, err := v.Validate(t.Context(), asked[*tappv1.TApp](t, requestFor(object, old)))
	if err != nil {
		return "error: " + err.Error()
	}
	return inWords(a)
}

func inWords(a review.Answer) string {
	lines := append([]string{"allowed"}, a.Warnings...)
	if !a.Allowed {
		lines[0] = "denied: " + a.Result.Message
	}
	return strings.Join(lines, "\n")
}

// TestUpdates: which updates are judged, and by what.
func TestUpdates(t *testing.T) {
	const bad = "{updateStrategy: {maxUnavailable: 0}, templates: {'0': gone}}"
	const old = `spec.updateStrategy.maxUnavailable: Invalid value: 0: no update could start; give a number above 0, or a percentage from 1% to 100% (this was so before, and does not block the update)`
	const gone = `spec.templates[0]: Not found: "gone": there is no such template; add it to spec.templatePool, or name another one (there are: default, canary)`
	const created = "3 instances are created (0-2): the instance has no pod"
	for _, c := range []struct{ name, from, to, want string }{
		{"that leave the spec alone", bad, bad, "allowed"},
		{"that spell the spec in another way", bad, merged(bad, "{replicas: 3, minReadySeconds: 0}"), "allowed"},
		{"that leave what is wrong alone", "updateStrategy: {maxUnavailable: 0}", "{updateStrategy: {maxUnavailable: 0}, minReadySeconds: 1}", "allowed\n" + old + "\n" + created},
		{"that change what is wrong, to what is wrong", "updateStrategy: {maxUnavailable: 0}", "updateStrategy: {maxUnavailable: 0%}",
			`denied: TApp.apps.tkestack.io "web" is invalid: spec.updateStrategy.maxUnavailable: Invalid value: "0%": no update could start; give a number above 0, or a percentage from 1% to 100%`},
		{"that make a second mistake", "updateStrategy: {maxUnavailable: 0}", bad, `denied: TApp.apps.tkestack.io "web" is invalid: ` + gone},
		{"that correct one of two mistakes", bad, "templates: {'0': gone}", "allowed\n" + gone + " (this was so before, and does not block the update)\n" +
			"2 instances are created (1-2): the instance has no pod"},
		{"good ones", "", "replicas: 2", "allowed\n2 instances are created (0-1): the instance has no pod"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := verdictOf(t, newTestValidator(), object(t, c.to), object(t, c.from)); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestMistakesAreNotTried: nobody asks the cluster about what is wrong in itself.
func TestMistakesAreNotTried(t *testing.T) {
	v := newTestValidator()
	v.dryRuns.pods = fakePods{create: func(context.Context, *corev1.Pod) error { panic("tried") }}
	const want = `denied: TApp.apps.tkestack.io "web" is invalid: spec.replicas: Invalid value: 60000: one TApp can have 50000 instances; split it into several`
	if got := verdictOf(t, v, object(t, "replicas: 60000"), nil); got != want {
		t.Errorf("got %s", got)
	}
}

// TestManyMistakes: they are counted where there would be too many.
func TestManyMistakes(t *testing.T) {
	var statuses []string
	for _, id := range strings.Split("abcdefghijklmnopqrstuvwxyz", "") {
		statuses = append(statuses, id+": Killed")
	}
	a, err := newTestValidator().Validate(t.Context(), asked[*tappv1.TApp](t, requestFor(object(t, "statuses: {"+strings.Join(statuses, ", ")+"}"), nil)))
	if err != nil {
		t.Fatal(err)
	}
	causes := a.Result.Details.Causes
	if last := causes[len(causes)-1]; len(causes) != 21 || last.Field+": "+last.Message != "spec: and 6 more" || !strings.HasSuffix(a.Result.Message, "; spec: and 6 more") {
		t.Errorf("%d causes: %+v", len(causes), causes)
	}
}

// TestPreview: from the pods that there are; without them, a word about that.
func TestPreview(t *testing.T) {
	running := tapp(t, "")
	var pods []*corev1.Pod
	for id := range 3 {
		pod := plan.PodOf(running, tappv1.DefaultTemplateName, id)
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(running, tappv1.GroupVersionKind())}
		pods = append(pods, pod)
	}
	v := newTestValidator()
	v.reads.Pods = func(context.Context, *tappv1.TApp) ([]*corev1.Pod, error) { return pods, nil }
	got := verdictOf(t, v, object(t, "{templates: {'0': canary, '2': canary}, statuses: {'1': Killed}, paused: true}"), object(t, ""))
	if want := `allowed
2 instances are updated in place (0,2): image of web from web:1 to web:2
1 instance is killed (1): spec.statuses says Killed
spec.paused is true: updates start when it is false, and pods that are lost until then come back as they were`; got != want {
		t.Errorf("got\n%s", got)
	}
	for _, pod := range pods {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: tappv1.GateInPlaceUpdate, Status: corev1.ConditionTrue}}
	}
	got = verdictOf(t, v, object(t, "{templates: {'0': canary, '2': canary}, template: {metadata: {labels: {app: web}, annotations: {team: a}}, spec: {containers: [{name: web, image: 'web:1'}]}}}"), object(t, ""))
	if want := `allowed
2 instances are updated in place (0,2): image of web from web:1 to web:2
1 instance gets other labels or annotations without a restart (1): only labels and annotations of the template changed
2 of 3 instances at once (of 0,2): spec.updateStrategy.forceUpdate.maxUnavailable is 100%, and they do not use the template that rolls, "default"
2 of 3 instances do not follow the change of spec.template, and stay on "canary" (0,2)`; got != want {
		t.Errorf("got\n%s", got)
	}
	v.reads.Pods = func(context.Context, *tappv1.TApp) ([]*corev1.Pod, error) { return nil, errors.New("no") }
	got = verdictOf(t, v, object(t, "replicas: 5"), object(t, ""))
	if want := "allowed\nwhat this update will do to the instances cannot be told: their pods could not be read"; got != want {
		t.Errorf("got\n%s", got)
	}
}

// TestOverlap: on creation, and when labels change.
func TestOverlap(t *testing.T) {
	other := tapp(t, "")
	other.Name = "other"
	v := newTestValidator()
	v.reads.TApps = func(context.Context, string) ([]*tappv1.TApp, error) {
		return []*tappv1.TApp{other, tapp(t, ""), {}}, nil
	}
	const warning = "\nspec.selector: it overlaps with that of TApp other; Services and budgets that use it mean the pods of both. Give each a label of its own"
	const one = "{templatePool: {}, template: {metadata: {labels: {app: web, tier: front}}, spec: {containers: [{name: web, image: 'web:1'}]}}}"
	for _, c := range []struct{ name, from, to, want string }{
		{"created", "", one, "allowed" + warning},
		{"created apart", "", strings.ReplaceAll(one, "app: web", "app: shop"), "allowed"},
		{"updated", one, merged(one, "minReadySeconds: 1"), "allowed"},
		{"other labels", "templatePool: {}", merged(one, "{replicas: 0, selector: {matchLabels: {app: web}}}"), "allowed" + warning},
	} {
		t.Run(c.name, func(t *testing.T) {
			var from []byte
			if c.from != "" {
				from = object(t, merged(c.from, "replicas: 0"))
			}
			if got := verdictOf(t, v, object(t, merged(c.to, "replicas: 0")), from); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestScale: by the TApp where it is known, by name and number where it is not.
func TestScale(t *testing.T) {
	stored := tapp(t, "{templates: {'4': canary}, updateStrategy: {maxUnavailable: 0}}")
	const tooMany = `denied: TApp.apps.tkestack.io "web" is invalid: spec.replicas: Invalid value: 60000: one TApp can have 50000 instances; split it into several`
	for _, c := range []struct {
		name     string
		known    []*tappv1.TApp
		err      error
		replicas int32
		want     string
	}{
		{"up", []*tappv1.TApp{stored}, nil, 5, "allowed\n5 instances are created (0-4): the instance has no pod"},
		{"down", []*tappv1.TApp{stored}, nil, 0, "allowed\nspec.templates: instance 4 has an entry, and does not exist while spec.replicas is 0"},
		{"to the same", []*tappv1.TApp{stored}, nil, 3, "allowed"},
		{"too many", []*tappv1.TApp{stored}, nil, 60000, tooMany},
		{"of an unknown one", nil, nil, 5, "allowed"},
		{"of an unknown one, too many", nil, nil, 60000, tooMany},
		{"when nothing can be read", nil, errors.New("no"), 60000, tooMany},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := newTestValidator()
			v.reads.TApps = func(context.Context, string) ([]*tappv1.TApp, error) { return c.known, c.err }
			scale, err := json.Marshal(autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: c.replicas}})
			if err != nil {
				t.Fatal(err)
			}
			r := requestFor(scale, scale)
			r.SubResource, r.Kind = "scale", metav1.GroupVersionKind(autoscalingv1.SchemeGroupVersion.WithKind("Scale"))
			a, err := v.Validate(t.Context(), asked[*tappv1.TApp](t, r))
			if err != nil {
				t.Fatal(err)
			}
			if got := inWords(a); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
	if *stored.Spec.Replicas != 3 {
		t.Error("what was read has been changed")
	}
}
