package plugin

import (
	"encoding/json"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
)

const appSetsPath = "/apis/workload.dmall.com/v1beta1/namespaces/shop/appsets"

// fleetApp is an AppSet in the midst of a rollout: the canary is done and waits for a
// confirmation, its cluster two is silent.
func fleetApp(t *testing.T, edits ...func(*v1beta1.AppSet)) *v1beta1.AppSet {
	t.Helper()
	a := &v1beta1.AppSet{}
	err := yaml.UnmarshalStrict([]byte(`
apiVersion: workload.dmall.com/v1beta1
kind: AppSet
metadata: {name: web, namespace: shop, uid: app, generation: 4}
spec:
  podSpec:
    deployType: InPlaceSet
    template: {spec: {containers: [{name: web, image: nginx}]}}
  updateStrategy: {upgradeType: canary|blue, needWaitingForConfirm: true, maxUnavailable: 40%}
  clusterTopology:
    clusters:
    - name: one
      podSets: [{name: web-gz01-canary, replicas: 1, version: v2}, {name: web-gz01-blue, replicas: 3, version: v2}]
    - name: two
      podSets: [{name: web-gz02-blue, replicas: 1, version: v2}]
status:
  observedGeneration: 4
  conditions:
  - {type: Ready, status: "False", reason: Progressing, message: a gate waits, observedGeneration: 4, lastTransitionTime: "2026-11-24T10:00:00Z"}
  - {type: Stalled, status: "False", reason: Progressing, message: nothing is in the way, observedGeneration: 4, lastTransitionTime: "2026-11-24T10:00:00Z"}
  - {type: AwaitingConfirmation, status: "True", reason: StageDone, message: stage canary waits, observedGeneration: 4, lastTransitionTime: "2026-11-24T10:00:00Z"}
  aggrStatus:
    status: Unknown
    version: v1/v2
    desired: 5
    available: 4
    unAvailable: 1
    unknown: 1
    clusters:
    - name: one
      state: Ready
      podSets:
      - {name: web-gz01-canary, desired: 1, available: 1, update: 1, version: v2, ordinals: "0"}
      - {name: web-gz01-blue, desired: 3, available: 3, update: 0, version: v1, revision: v1-old, budget: 1, ordinals: 0-2}
    - {name: two, state: Offline, asOf: "2026-11-24T10:00:00Z", podSets: [{name: web-gz02-blue, desired: 1, available: 1, version: v1}]}
  rollout:
    id: 0123456789-4
    stage: canary
    stages:
    - {name: canary, state: Waiting, podSets: 1, done: 1, token: abc123}
    - {name: blue, state: Pending, podSets: 2}
`), a)
	if err != nil {
		t.Fatal(err)
	}
	units, _, problems := podset.Units(a)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	a.Status.AggrStatus.Clusters[0].PodSets[0].Revision = units[0].Hash
	for _, edit := range edits {
		edit(a)
	}
	return a
}

// settled is the same AppSet when all is done.
func settled(a *v1beta1.AppSet) {
	a.Spec.UpdateStrategy.MaxUnavailable = nil
	sums := &a.Status.AggrStatus
	sums.Status, sums.Version, sums.Available, sums.UnAvailable, sums.Unknown = v1beta1.PhaseRunning, "v2", 5, 0, 0
	sums.Clusters[1].State, sums.Clusters[1].AsOf = v1beta1.ClusterReady, nil
	for c := range sums.Clusters {
		for p := range sums.Clusters[c].PodSets {
			s := &sums.Clusters[c].PodSets[p]
			s.Revision, s.Update, s.Version, s.Budget = "", new(s.Desired), "v2", nil
		}
	}
	a.Status.Rollout.Stage = ""
	a.Status.Rollout.Stages = []v1beta1.StageStatus{{Name: "canary", State: "Done", PodSets: 1, Done: 1, ConfirmedBy: "ann"}, {Name: "blue", State: "Done", PodSets: 2, Done: 2}}
	a.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonSynced, ObservedGeneration: 4}}
}

func halted(a *v1beta1.AppSet) {
	a.Status.AggrStatus.Status = v1beta1.PhaseHalted
	a.Status.Rollout.Stages[0] = v1beta1.StageStatus{Name: "canary", State: "Halted", PodSets: 1, Failed: 1}
	a.Status.Conditions[1] = metav1.Condition{Type: v1beta1.ConditionStalled, Status: metav1.ConditionTrue, Reason: "Halted", Message: "1 of 1 clusters of stage canary failed", ObservedGeneration: 4}
}

// rolledOut: its rollout is done.
func rolledOut(a *v1beta1.AppSet) { a.Status.Rollout.State = "Done" }

// onLostNode: an instance waits for a node that is lost.
func onLostNode(a *v1beta1.AppSet) {
	meta.SetStatusCondition(&a.Status.Conditions, metav1.Condition{Type: v1beta1.ConditionStalled, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonNodeLost, Message: "cluster one: node a is lost", ObservedGeneration: 4})
}

// revisionsOf the AppSet: v1, which is stable, and v2, which it asks for.
func revisionsOf(t *testing.T, a *v1beta1.AppSet) *appsv1.ControllerRevisionList {
	t.Helper()
	list := &appsv1.ControllerRevisionList{}
	add := func(number int64, app *v1beta1.AppSet) {
		units, _, _ := podset.Units(app)
		raw, err := json.Marshal(podset.HistoryOf(app, units))
		if err != nil {
			t.Fatal(err)
		}
		r := appsv1.ControllerRevision{Revision: number, Data: runtime.RawExtension{Raw: raw}}
		r.Labels = map[string]string{v1beta1.LabelAppSetUID: "app", v1beta1.LabelRevision: podset.Revision(units)}
		list.Items = append(list.Items, r)
		if number == 1 {
			a.Status.Rollout.Stable = podset.Revision(units)
		} else {
			a.Status.Rollout.Revision = podset.Revision(units)
		}
	}
	before := a.DeepCopy()
	for c := range before.Spec.ClusterTopology.Clusters {
		for p := range before.Spec.ClusterTopology.Clusters[c].PodSets {
			before.Spec.ClusterTopology.Clusters[c].PodSets[p].Version = "v1"
		}
	}
	add(1, before)
	add(2, a)
	list.Items = append(list.Items, appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1beta1.LabelRevision: v1beta1.RevisionRecord}}, Data: runtime.RawExtension{Raw: []byte("{}")}})
	return list
}

func serveFleet(t *testing.T, a *v1beta1.AppSet, more map[string]any) {
	t.Helper()
	objects := map[string]any{appSetsPath: &v1beta1.AppSetList{Items: []v1beta1.AppSet{*a}}, appSetsPath + "/web": a}
	for path, object := range more {
		objects[path] = object
	}
	serve(t, objects)
}

func lines(text ...string) string { return strings.Join(text, "\n") + "\n" }
