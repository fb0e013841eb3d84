package advdeployment

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
)

// world has one AdvDeployment and its children. It carries out plans, and plays the
// controllers of the children.
type world struct {
	*testing.T
	d          *v1beta1.AdvDeployment
	children   map[Child]*unstructured.Unstructured
	autoscaled map[Child]bool
	refused    map[Child]string
	overruled  map[Child][]string
	now        time.Time
	versions   int
	// revisions and confirmations of rollouts.
	revisions     []*appsv1.ControllerRevision
	confirmations []*v1beta1.Confirmation
}

func newWorld(t *testing.T, spec string) *world {
	t.Helper()
	w := &world{T: t, d: &v1beta1.AdvDeployment{}, children: map[Child]*unstructured.Unstructured{}, autoscaled: map[Child]bool{}, now: time.Unix(1e9, 0)}
	w.d.Namespace, w.d.Name, w.d.UID, w.d.Generation, w.d.Status.ObservedGeneration = "ns", "a", "ad-uid", 1, -1
	w.spec(spec)
	return w
}

// spec as of now.
func (w *world) spec(spec string) {
	w.Helper()
	w.d.Spec = v1beta1.AdvDeploymentSpec{}
	if err := yaml.UnmarshalStrict([]byte(spec), &w.d.Spec); err != nil {
		w.Fatal(err)
	}
	w.d.Generation++
}

func (w *world) plan() Plan {
	w.Helper()
	in := Input{AdvDeployment: w.d.DeepCopy(), Autoscaled: w.autoscaled, Refused: w.refused, Overruled: w.overruled, Now: w.now,
		Revisions: w.revisions, Confirmations: w.confirmations}
	for _, child := range w.names() {
		in.Children = append(in.Children, w.children[child].DeepCopy())
	}
	before, _ := json.Marshal(in.AdvDeployment)
	p := Compute(in)
	if after, _ := json.Marshal(in.AdvDeployment); string(before) != string(after) {
		w.Error("Compute changed its input")
	}
	slices.Reverse(in.Children)
	if again := Compute(in); !reflect.DeepEqual(again, p) {
		w.Errorf("the order of the children matters:\n%+v\n%+v", p, again)
	}
	return p
}

func (w *world) names() []Child {
	return slices.SortedFunc(maps.Keys(w.children), func(a, b Child) int { return strings.Compare(a.String(), b.String()) })
}

// step plans once, carries it out, and says what was done.
func (w *world) step() (out []string) {
	w.Helper()
	p := w.plan()
	for ; p.Keep != nil; p = w.plan() {
		w.store(p.Keep)
	}
	for _, a := range p.Actions {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s", a.Op, strings.TrimPrefix(a.Child.String(), ` ""`))))
		w.write(a)
	}
	w.d.Status = p.Status
	return out
}

// store what a rollout remembers.
func (w *world) store(k *podset.Keep) {
	for _, r := range append(slices.Clone(k.Histories), k.Record) {
		if r == k.Record {
			w.revisions = slices.DeleteFunc(w.revisions, func(old *appsv1.ControllerRevision) bool { return old.Name == r.Name })
		}
		r = r.DeepCopy()
		r.UID, r.ResourceVersion = types.UID(r.Name), w.version()
		w.revisions = append(w.revisions, r)
	}
}

func (w *world) version() string {
	w.versions++
	return fmt.Sprint(w.versions)
}

func (w *world) write(a Action) {
	w.Helper()
	have := w.children[a.Child]
	switch a.Op {
	case Finalize:
		w.d.Finalizers = a.Finalizers
	case Delete:
		if have.GetUID() != a.UID || have.GetResourceVersion() != a.Version {
			w.Errorf("deleted another object: %+v", a)
		}
		have.SetDeletionTimestamp(&metav1.Time{Time: w.now})
	case Create, Apply, Adopt:
		if (have == nil) != (a.Op == Create) || have != nil && have.GetResourceVersion() != a.Version {
			w.Errorf("came too late: %+v", a)
			return
		}
		o := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(a.Manifest)}
		o.SetUID(types.UID(a.Child.String()))
		o.SetGeneration(1)
		if have != nil {
			o.SetGeneration(have.GetGeneration())
			if !reflect.DeepEqual(have.Object["spec"], o.Object["spec"]) {
				o.SetGeneration(have.GetGeneration() + 1)
			}
			if status, found := have.Object["status"]; found {
				o.Object["status"] = status
			}
			if revision := have.GetAnnotations()[annotationDeploymentRevision]; revision != "" {
				o.SetAnnotations(merged(o.GetAnnotations(), annotationDeploymentRevision, revision))
			}
			if live, found, _ := unstructured.NestedInt64(have.Object, "spec", "replicas"); found {
				if _, given, _ := unstructured.NestedInt64(o.Object, "spec", "replicas"); !given {
					_ = unstructured.SetNestedField(o.Object, live, "spec", "replicas")
				}
			}
		}
		o.SetResourceVersion(w.version())
		w.children[a.Child] = o
	default:
		w.Fatalf("nobody corrects anything here: %+v", a)
	}
}

func merged(in map[string]string, key, value string) map[string]string {
	if in == nil {
		in = map[string]string{}
	}
	in[key] = value
	return in
}

// settle has the controllers of the children do all they can, and gone children go.
func (w *world) settle() {
	for _, child := range w.names() {
		o := w.children[child]
		switch {
		case o.GetDeletionTimestamp() != nil:
			delete(w.children, child)
		case child.Kind != Service:
			replicas, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
			w.tell(child, replicas, replicas, replicas)
		}
	}
}

// tell has the controller of a child tell of as many instances. Updated ones have the new
// content; in the midst of a change, all that wait follow what they have.
func (w *world) tell(child Child, current, updated, available int64) {
	o := w.children[child]
	statuses := map[string]any{}
	if child.Kind == TApp {
		first, _, _ := unstructured.NestedInt64(o.Object, "spec", "ordinals", "start")
		for id := range current {
			statuses[fmt.Sprint(first+id)] = "Running"
		}
		if o.GetAnnotations()[v1beta1.AnnotationFrom] != "" {
			moved, _, _ := unstructured.NestedStringMap(o.Object, "spec", "templates")
			updated = current - max(0, int64(len(moved))-updated)
		}
	}
	status := map[string]any{"observedGeneration": o.GetGeneration(), "replicas": current, "readyReplicas": available, "availableReplicas": available, "updatedReplicas": updated, "statuses": statuses}
	if before, _ := o.Object["status"].(map[string]any); before["conditions"] != nil {
		status["conditions"] = before["conditions"]
	}
	o.Object["status"] = status
	if child.Kind == Deployment {
		o.SetAnnotations(merged(o.GetAnnotations(), annotationDeploymentRevision, "1"))
	}
	o.SetResourceVersion(w.version())
}

// run until nothing is left to do, and say what was done.
func (w *world) run() (out []string) {
	w.Helper()
	for range 20 {
		done := w.step()
		w.settle()
		out = append(out, done...)
		if p := w.plan(); len(done)+len(p.Actions) == 0 && p.Status.AggrStatus.Status == w.d.Status.AggrStatus.Status {
			return out
		}
	}
	w.Fatalf("it does not end: %q", out)
	return nil
}

func (w *world) condition(kind string) string {
	for _, c := range w.d.Status.Conditions {
		if c.Type == kind {
			return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
		}
	}
	return ""
}

// field of a child, as JSON.
func (w *world) field(child Child, path ...string) string {
	w.Helper()
	o := w.children[child]
	if o == nil {
		w.Fatalf("there is no %s", child)
	}
	value, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
	raw, err := json.Marshal(value)
	if err != nil {
		w.Fatal(err)
	}
	return string(raw)
}

func (w *world) expect(what string, got, want any) {
	w.Helper()
	if !reflect.DeepEqual(got, want) {
		w.Errorf("%s:\ngot  %v\nwant %v", what, got, want)
	}
}
