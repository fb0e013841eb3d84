package appset

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
)

const fleet = "hub-1"

var start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// tester is what the world needs of a test, or of a property.
type tester interface {
	Helper()
	Fatalf(string, ...any)
}

// world is a hub with one AppSet, and clusters with a small model of a worker each.
type world struct {
	tester
	app           *v1beta1.AppSet // nil: gone
	clusters      map[string]*Cluster
	graves        []Tombstone
	revisions     []*appsv1.ControllerRevision
	confirmations []*v1beta1.Confirmation
	charts        map[string]Chart
	refused       map[string]Refusal
	overrule      map[string][]string
	lost          map[string][]string
	now           time.Time
	versions      int
	wrote         []string // "Op cluster", and "Own"
	events        []Event
}

const web = `
metadata: {name: web, namespace: shop, uid: web-1, generation: 1}
spec:
  replicas: 6
  podSpec: {deployType: tapp, template: {spec: {containers: [{name: web, image: nginx}]}}}
  clusterTopology:
    clusters:
    - {name: One, podSets: [{name: web-a, replicas: 2, version: v1}, {name: web-b, replicas: 1, version: v1}]}
    - {name: two, podSets: [{name: web-a, replicas: 3, version: v2}]}
`

func newWorld(t tester, text string, clusters ...string) *world {
	t.Helper()
	w := &world{tester: t, app: &v1beta1.AppSet{}, clusters: map[string]*Cluster{}, refused: map[string]Refusal{}, now: start}
	if err := yaml.UnmarshalStrict([]byte(text), w.app); err != nil {
		t.Fatalf("%v", err)
	}
	for _, name := range clusters {
		w.clusters[name] = &Cluster{Name: name, UID: types.UID("uid-" + name), State: v1beta1.ClusterReady, Certain: true, AsOf: start}
	}
	return w
}

// edit the AppSet's spec as a user.
func (w *world) edit(change func(*v1beta1.AppSet)) {
	w.app = w.app.DeepCopy()
	before := w.app.Spec.DeepCopy()
	change(w.app)
	if fmt.Sprint(plainOf(before)) != fmt.Sprint(plainOf(&w.app.Spec)) {
		w.app.Generation++
	}
}

func plainOf(object any) map[string]any {
	out, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	return out
}

func (w *world) deleteAppSet() {
	if len(w.app.Finalizers) == 0 {
		w.app = nil
		return
	}
	w.edit(func(a *v1beta1.AppSet) {
		a.DeletionTimestamp = new(metav1.NewTime(w.now))
		a.Generation++
	})
}

// silence a cluster: what is known of it gets old.
func (w *world) silence(name string, state v1beta1.ClusterState) {
	c := w.clusters[name]
	c.State, c.Certain, c.AsOf = state, false, w.now.Add(-time.Minute)
}

func (w *world) hear(name string) {
	c := w.clusters[name]
	c.State, c.Certain = v1beta1.ClusterReady, true
}

func (w *world) input() Input {
	in := Input{AppSet: w.app.DeepCopy(), Fleet: fleet, Tombstones: slices.Clone(w.graves), Revisions: slices.Clone(w.revisions), Confirmations: w.confirmations, Charts: maps.Clone(w.charts), Refused: w.refused, Overruled: w.overrule, Lost: w.lost, Now: w.now}
	for _, name := range slices.Sorted(maps.Keys(w.clusters)) {
		c := *w.clusters[name]
		c.Part = c.Part.DeepCopy()
		in.Clusters = append(in.Clusters, c)
	}
	return in
}

// step plans and carries out once, and says whether there was something to do.
func (w *world) step() bool {
	w.Helper()
	if w.app == nil {
		return false
	}
	in := w.input()
	before, _ := json.Marshal(in)
	p := Compute(in)
	if after, _ := json.Marshal(in); string(after) != string(before) {
		w.Fatalf("the input was changed")
	}
	w.events = append(w.events, p.Events...)
	if p.Own != nil {
		w.own(p.Own)
		return true
	}
	if p.Keep != nil {
		w.store(p.Keep)
		return true
	}
	w.revisions = slices.DeleteFunc(w.revisions, func(r *appsv1.ControllerRevision) bool { return slices.Contains(p.Obsolete, r) })
	for _, a := range p.Actions {
		w.carryOut(a)
	}
	w.app = w.app.DeepCopy()
	w.app.Status = p.Status
	if len(p.Actions) == 0 && p.Forget != nil {
		w.own(p.Forget)
		return true
	}
	return len(p.Actions) > 0
}

// own writes the AppSet's own metadata.
func (w *world) own(own *Own) {
	w.wrote = append(w.wrote, "Own")
	w.app = w.app.DeepCopy()
	w.app.Finalizers = own.Finalizers
	metav1.SetMetaDataAnnotation(&w.app.ObjectMeta, v1beta1.AnnotationClusters, own.Clusters)
	if w.app.DeletionTimestamp != nil && len(w.app.Finalizers) == 0 {
		w.app = nil
	}
}

// store what a rollout remembers.
func (w *world) store(k *podset.Keep) {
	w.Helper()
	w.revisions = append(w.revisions, k.Histories...)
	w.versions++
	record := k.Record.DeepCopy()
	for i, r := range w.revisions {
		if r.Name == record.Name {
			if r.ResourceVersion != record.ResourceVersion {
				w.Fatalf("it replaces another version of the record")
			}
			record.ResourceVersion = fmt.Sprint(w.versions)
			w.revisions[i] = record
			return
		}
	}
	record.ResourceVersion = fmt.Sprint(w.versions)
	w.revisions = append(w.revisions, record)
}

// confirm the gate that waits.
func (w *world) confirm() *world {
	w.Helper()
	for _, stage := range w.app.Status.Rollout.Stages {
		if stage.Token != "" {
			w.confirmations = append(w.confirmations, &v1beta1.Confirmation{Spec: v1beta1.ConfirmationSpec{AppSet: w.app.Name, Rollout: w.app.Status.Rollout.ID, Stage: stage.Name, Token: stage.Token, ConfirmedBy: "ann"}})
			return w
		}
	}
	w.Fatalf("no gate waits: %+v", w.app.Status.Rollout)
	return w
}

// settle until there is nothing to do.
func (w *world) settle() *world {
	w.Helper()
	for range 20 {
		if !w.step() {
			return w
		}
	}
	w.Fatalf("there is always something to do: %q", w.wrote)
	return w
}

func (w *world) carryOut(a Action) {
	w.Helper()
	w.wrote = append(w.wrote, string(a.Op)+" "+a.Cluster)
	if a.Event != nil {
		w.events = append(w.events, *a.Event)
	}
	c := w.clusters[a.Cluster]
	w.versions++
	version := fmt.Sprint(w.versions)
	switch a.Op {
	case Create, Apply:
		part := &v1beta1.AdvDeployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(a.Manifest, part, true); err != nil {
			w.Fatalf("%v", err)
		}
		if a.Op == Create && c.Part != nil || a.Op == Apply && (c.Part.UID != a.UID || c.Part.ResourceVersion != a.Version) {
			w.Fatalf("%s to another object in %s", a.Op, a.Cluster)
		}
		part.UID, part.ResourceVersion, part.Generation = types.UID("part-"+version), version, 1
		part.Status.ObservedGeneration = -1
		if old := c.Part; old != nil {
			part.UID, part.Status, part.Generation = old.UID, old.Status, old.Generation+1
		}
		c.Part = part
	case Correct, Release:
		raw, _ := json.Marshal(c.Part)
		patch, err := jsonpatch.DecodePatch(a.Patch)
		if err == nil {
			raw, err = patch.Apply(raw)
		}
		part := &v1beta1.AdvDeployment{}
		if err == nil {
			err = json.Unmarshal(raw, part)
		}
		if err != nil || part.UID != c.Part.UID || part.ResourceVersion != c.Part.ResourceVersion {
			w.Fatalf("%s: %v", a.Patch, err)
		}
		part.ResourceVersion, part.Generation = version, part.Generation+1
		c.Part = part
	case Delete:
		if c.Part.UID != a.UID {
			w.Fatalf("deletes another object in %s", a.Cluster)
		}
		c.Part = c.Part.DeepCopy()
		c.Part.DeletionTimestamp = new(metav1.NewTime(w.now))
	case Bury:
		w.graves = append(w.graves, *a.Tombstone)
	case Unbury:
		w.graves = slices.DeleteFunc(w.graves, func(t Tombstone) bool { return t == *a.Tombstone })
	}
}

// work has the workers of all clusters, heard or not, do what their parts say.
func (w *world) work() *world {
	for name := range w.clusters {
		w.workIn(name)
	}
	return w
}

func (w *world) workIn(name string) {
	w.Helper()
	c := w.clusters[name]
	if c.Part == nil {
		return
	}
	if c.Part.DeletionTimestamp != nil {
		c.Part = nil
		return
	}
	part := c.Part.DeepCopy()
	units, _, problems := podset.Placed(part)
	if len(problems) > 0 {
		w.Fatalf("the worker of %s: %v", name, problems)
	}
	s := &part.Status
	s.ObservedGeneration, s.AggrStatus = part.Generation, v1beta1.AdvDeploymentAggregate{}
	for _, u := range units {
		n := u.Replicas
		s.AggrStatus.PodSets = append(s.AggrStatus.PodSets, v1beta1.PodSetStatus{Name: u.PodSet.Name, Desired: n, Available: n,
			HaveDeploy: new(true), Observed: true, Ready: new(n), Update: new(n), Current: new(n), Revision: u.Hash, Version: u.Version})
		s.AggrStatus.Desired, s.AggrStatus.Available = s.AggrStatus.Desired+n, s.AggrStatus.Available+n
	}
	c.Part = part
}

// made are the objects that the worker of a cluster reports to have made of its part.
func (w *world) made(name string, resources ...string) {
	w.clusters[name].Part.Status.AggrStatus.OwnerResource = resources
}

// install until all is available.
func (w *world) install() *world {
	w.Helper()
	w.settle().work().settle()
	w.wrote, w.events = nil, nil
	return w
}

func (w *world) condition(kind string) metav1.Condition {
	if c := meta.FindStatusCondition(w.app.Status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// expect what was written since the last time, in any order.
func (w *world) expect(wrote ...string) *world {
	w.Helper()
	got := slices.Sorted(slices.Values(w.wrote))
	slices.Sort(wrote)
	if !slices.Equal(got, wrote) {
		w.Fatalf("wrote %q, want %q", got, wrote)
	}
	w.wrote = nil
	return w
}

// says checks the phase, the sums, and what the condition Stalled says.
func (w *world) says(phase v1beta1.Phase, sums, stalled string) *world {
	w.Helper()
	s := w.app.Status.AggrStatus
	if got := fmt.Sprintf("%d/%d/%d %s", s.Desired, s.Available, s.Unknown, s.Version); s.Status != phase || strings.TrimSpace(got) != sums || s.UnAvailable != s.Desired-s.Available {
		w.Fatalf("%s %s (%d unavailable), want %s %s", s.Status, got, s.UnAvailable, phase, sums)
	}
	got := w.condition(v1beta1.ConditionStalled)
	said := ""
	if got.Status == metav1.ConditionTrue {
		said = got.Reason + ": " + got.Message
	}
	if said != stalled {
		w.Fatalf("stalled\n%s\nwant\n%s", said, stalled)
	}
	return w
}

var _ tester = (*testing.T)(nil)

func (w *world) graveOf() types.NamespacedName {
	return types.NamespacedName{Namespace: w.app.Namespace, Name: w.app.Name}
}
