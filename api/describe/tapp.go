package describe

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	apiv1 "tkestack.io/tapp/api/v1"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/budget"
	"tkestack.io/tapp/plan/ids"
	"tkestack.io/tapp/plan/view"
)

// TApp makes a line of the list, of what the controller has written into the status.
func TApp(t *tappv1.TApp) apiv1.TApp {
	d := t.DeepCopy()
	tappv1.Default(d)
	s := &d.Spec
	out := apiv1.TApp{
		Summary:  apiv1.Summary{Namespace: t.Namespace, Name: t.Name, UID: string(t.UID), Created: t.CreationTimestamp, Generation: t.Generation, ObservedGeneration: t.Status.ObservedGeneration},
		Replicas: *s.Replicas, Ready: t.Status.ReadyReplicas, Available: t.Status.AvailableReplicas, Updated: t.Status.UpdatedReplicas, Paused: s.Paused,
		CurrentRevision: t.Status.CurrentRevision, UpdateRevision: t.Status.UpdateRevision, States: map[string]int{},
	}
	for _, state := range t.Status.Statuses {
		out.States[string(state)]++
	}
	out.Desired = desired(d)
	n, _ := budget.Scale(*s.UpdateStrategy.MaxUnavailable, int(out.Desired))
	out.MaxUnavailable, out.Unavailable = int32(n), max(0, out.Desired-out.Available)
	out.Templates = templatesOf(d)
	judgeTApp(&out, t)
	return out
}

// desired is how many instances are to run, by spec and status.
func desired(t *tappv1.TApp) int32 {
	out := *t.Spec.Replicas
	leave := map[string]bool{}
	for id, state := range t.Spec.Statuses {
		leave[id] = state == tappv1.InstanceKilled
	}
	for id, state := range t.Status.Statuses {
		leave[id] = leave[id] || state == tappv1.InstanceFailed || state == tappv1.InstanceSucc
	}
	for id, left := range leave {
		if n, ok := ids.Parse(id); ok && left && ids.Of(&t.Spec).Has(n) {
			out--
		}
	}
	return out
}

// templatesOf a TApp with how many instances are to have each, by name.
func templatesOf(t *tappv1.TApp) []apiv1.Template {
	counts := map[string]int{t.Spec.DefaultTemplateName: int(*t.Spec.Replicas)}
	for id, name := range t.Spec.Templates {
		if n, ok := ids.Parse(id); ok && name != "" && ids.Of(&t.Spec).Has(n) {
			counts[name]++
			counts[t.Spec.DefaultTemplateName]--
		}
	}
	out := []apiv1.Template{}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if counts[name] <= 0 {
			continue
		}
		one := apiv1.Template{Name: name, Images: []string{}, Instances: counts[name]}
		if spec := t.Spec.FindTemplate(name); spec != nil {
			one.Images = imagesOf(spec.Spec.Containers)
		}
		out = append(out, one)
	}
	return out
}

func imagesOf(containers []corev1.Container) []string {
	out := make([]string, len(containers))
	for i := range containers {
		out[i] = containers[i].Name + "=" + containers[i].Image
	}
	return out
}

func isTrue(c *metav1.Condition) bool { return c != nil && c.Status == metav1.ConditionTrue }

// Command is a command of kubectl tapp about the object.
func Command(s *apiv1.Summary, verb, rest string) string {
	line := "kubectl tapp " + verb + " " + s.Name
	if rest != "" {
		line += " " + rest
	}
	return line + " -n " + s.Namespace
}

// TAppDetail is all that is told of a TApp.
func TAppDetail(o *view.Observed) (*apiv1.TAppDetail, error) {
	d := &apiv1.TAppDetail{TApp: TApp(o.TApp), Problems: o.Problems(), Waiting: waitingOf(o)}
	for _, s := range o.Steps() {
		d.Steps = append(d.Steps, apiv1.Step{Step: s, Sentence: s.Sentence()})
	}
	d.Commands = commandsOf(d)
	text, err := Manifest(o.TApp, tappv1.GroupVersionKind().GroupVersion().String(), tappv1.Kind)
	d.Object = text
	return d, err
}

// Manifest is an object as users write it, with its status.
func Manifest(object runtime.Object, apiVersion, kind string) (json.RawMessage, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("writing a %s: %w", kind, err)
	}
	fields["apiVersion"], fields["kind"] = apiVersion, kind
	return json.Marshal(fields)
}

// commandsOf a TApp are those that one may want next.
func commandsOf(d *apiv1.TAppDetail) []apiv1.Hint {
	out := []apiv1.Hint{hint("Follow it", Command(&d.Summary, "status", "--watch")), hint("List its instances", Command(&d.Summary, "get", "-o wide"))}
	if len(d.Waiting) > 0 {
		first, _, _ := strings.Cut(d.Waiting[0].Instances, ",")
		first, _, _ = strings.Cut(first, "-")
		out = append(out, hint("Explain an instance that waits", Command(&d.Summary, "explain", first)))
	}
	if len(d.Steps) > 0 {
		out = append(out, hint("Tell what is left to do", Command(&d.Summary, "plan", "")))
	}
	if d.Paused {
		out = append(out, hint("Let updates go on", Command(&d.Summary, "resume", "")))
	} else if len(d.Steps) > 0 {
		out = append(out, hint("Hold updates", Command(&d.Summary, "pause", "")))
	}
	if d.CurrentRevision != d.UpdateRevision && d.CurrentRevision != "" {
		out = append(out, hint("Go back to the last version", Command(&d.Summary, "undo", "")))
	}
	return append(out, hint("Show its history", Command(&d.Summary, "history", "")))
}

func hint(title, line string) apiv1.Hint { return apiv1.Hint{Title: title, Line: line} }
