package appset

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

func annotate(w *world, key, value string) {
	w.edit(func(a *v1beta1.AppSet) { metav1.SetMetaDataAnnotation(&a.ObjectMeta, key, value) })
}

// newVersion is a change of content in both clusters.
func newVersion(a *v1beta1.AppSet) {
	for i := range a.Spec.ClusterTopology.Clusters {
		a.Spec.ClusterTopology.Clusters[i].PodSets[0].Version = "v9"
	}
	a.Spec.UpdateStrategy.MaxConcurrentClusters = new(intstr.FromString("100%"))
}

// TestTwice: one cluster under two names has one part, and the second name is told.
func TestTwice(t *testing.T) {
	w := newWorld(t, web, "one", "two")
	w.clusters["two"].UID = w.clusters["one"].UID
	w.settle().work().settle()
	if w.clusters["two"].Part != nil {
		t.Error("it has two parts")
	}
	w.says(v1beta1.PhaseUnknown, "6/3/3 v1", "ClusterMistaken: cluster two is mistaken for another one; nothing is written there: it is cluster One, by the UID uid-one: name it once")
}

// TestRenamed: a cluster that is registered and listed under another name keeps its part:
// taking the old name out is no departure. The old registration may be there still, or gone.
func TestRenamed(t *testing.T) {
	for name, old := range map[string]Cluster{
		"both registered": {Name: "two", UID: "uid-two", State: v1beta1.ClusterReady, Certain: true, AsOf: start},
		"one registered":  {Name: "two", State: v1beta1.ClusterUnregistered},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, web, "one", "two").install()
			zwei := *w.clusters["two"]
			zwei.Name = "zwei"
			if old.Certain {
				old.Part = zwei.Part
			}
			w.clusters["zwei"], w.clusters["two"] = &zwei, &old
			w.edit(func(a *v1beta1.AppSet) { a.Spec.ClusterTopology.Clusters[1].Name = "zwei" })
			w.settle().expect("Own", "Apply zwei") // its instances are told another name of their cluster
			if got := w.app.Annotations[v1beta1.AnnotationClusters]; got != "one=uid-one,zwei=uid-two" {
				t.Errorf("remembered are %s", got)
			}
			w.work().settle().expect().says(v1beta1.PhaseRunning, "6/6/0 v1/v2", "")
			w.silence("zwei", v1beta1.ClusterOffline)
			w.deleteAppSet()
			w.settle().expect("Delete one")
			w.workIn("one")
			if w.settle().expect(); w.app == nil {
				t.Error("it is gone, and its part is not")
			}
		})
	}
}

// TestRenamedAndSilent: what was remembered under the old name holds a deletion, though
// nothing was ever heard under the new one.
func TestRenamedAndSilent(t *testing.T) {
	w := newWorld(t, web, "one", "two").install()
	w.clusters["zwei"] = &Cluster{Name: "zwei", UID: "uid-two", State: v1beta1.ClusterOffline}
	w.clusters["two"] = &Cluster{Name: "two", State: v1beta1.ClusterUnregistered}
	w.edit(func(a *v1beta1.AppSet) { a.Spec.ClusterTopology.Clusters[1].Name = "zwei" })
	w.deleteAppSet()
	w.settle().expect("Delete one")
	w.workIn("one")
	if w.settle().expect(); w.app == nil {
		t.Fatal("it is gone, and its part is not")
	}
	if stalled := w.condition(v1beta1.ConditionStalled); stalled.Reason != ReasonUnreachable || !strings.Contains(stalled.Message, "the deletion waits for cluster zwei") {
		t.Errorf("%s: %s", stalled.Reason, stalled.Message)
	}
}

// TestStates: what is written to clusters in each state, and what the status says of them.
func TestStates(t *testing.T) {
	for state, c := range map[v1beta1.ClusterState]struct {
		wrote         []string
		phase         v1beta1.Phase
		sums, stalled string
	}{
		v1beta1.ClusterReady:       {[]string{"Apply one", "Apply two"}, v1beta1.PhaseUpdating, "6/6/0 v1/v2", ""},
		v1beta1.ClusterSuspect:     {[]string{"Apply one"}, v1beta1.PhaseUnknown, "6/3/3 v1/v2", ""},
		v1beta1.ClusterOffline:     {[]string{"Apply one"}, v1beta1.PhaseUnknown, "6/3/3 v1/v2", ""},
		v1beta1.ClusterMaintaining: {[]string{"Apply one"}, v1beta1.PhaseUnknown, "6/3/3 v1/v2", ""},
		v1beta1.ClusterMistaken: {[]string{"Apply one"}, v1beta1.PhaseUnknown, "6/3/3 v1/v2",
			"ClusterMistaken: cluster two is mistaken for another one; nothing is written there"},
		v1beta1.ClusterUnfit: {[]string{"Apply one"}, v1beta1.PhaseUnknown, "6/3/3 v1/v2", "ClusterUnfit: cluster two cannot be used: install tapp there"},
		v1beta1.ClusterUnregistered: {[]string{"Apply one"}, v1beta1.PhaseUnknown, "6/3/3 v1/v2",
			"ClusterUnregistered: cluster two is not registered: register it under this name, or correct the name in spec.clusterTopology"},
	} {
		t.Run(string(state), func(t *testing.T) {
			w := newWorld(t, web, "one", "two").install()
			if state != v1beta1.ClusterReady {
				w.silence("two", state)
			}
			if state == v1beta1.ClusterUnfit {
				w.clusters["two"].Message = "install tapp there"
			}
			w.edit(newVersion)
			w.settle().expect(c.wrote...).says(c.phase, c.sums, c.stalled)
			two := w.app.Status.AggrStatus.Clusters[1]
			if two.Name != "two" || two.State != state || (two.AsOf == nil) != (state == v1beta1.ClusterReady) || two.Available != 3 {
				t.Errorf("%+v", two)
			}
			if reachable := w.condition(v1beta1.ConditionClustersReachable); (reachable.Status == metav1.ConditionTrue) != (state == v1beta1.ClusterReady) {
				t.Errorf("%+v", reachable)
			}
			w.hear("two")
			w.settle().work().settle().work().settle().says(v1beta1.PhaseRunning, "6/6/0 v1/v9", "")
		})
	}
}

// TestUnknownCluster: a name that no registration has stops nobody else.
func TestUnknownCluster(t *testing.T) {
	w := newWorld(t, web, "one")
	w.settle().expect("Own", "Create one").work().settle().says(v1beta1.PhaseUnknown, "6/3/3 v1",
		"ClusterUnregistered: cluster two is not registered: register it under this name, or correct the name in spec.clusterTopology")
	w.wrote = nil
	w.deleteAppSet()
	if w.settle().work().settle().expect("Delete one", "Own"); w.app != nil {
		t.Error("the deletion waits for a cluster that never had a part")
	}
}

// TestInvalid: a spec that cannot be carried out harms nothing that runs, and its clusters
// may not leave by it.
func TestInvalid(t *testing.T) {
	w := newWorld(t, web, "one", "two").install()
	w.edit(func(a *v1beta1.AppSet) {
		a.Spec.ClusterTopology.Clusters = a.Spec.ClusterTopology.Clusters[:1]
		a.Spec.ClusterTopology.Clusters[0].PodSets[0].Replicas = new(intstr.FromString("x"))
	})
	w.settle().expect().says(v1beta1.PhaseInvalid, "3/3/0 v1/v2",
		`Invalid: spec.clusterTopology.clusters[One].podSets[web-a].replicas: "x" is no number, and no percentage from 0% to 100%`)
	fresh := newWorld(t, web, "one", "two")
	fresh.edit(func(a *v1beta1.AppSet) { a.Spec.PodSpec.Template = nil })
	fresh.settle().expect()
}

// TestEdited: what somebody edited in a member is put right and told, also what no apply
// takes away.
func TestEdited(t *testing.T) {
	for name, edit := range map[string]func(*v1beta1.AdvDeployment){
		"a field":      func(d *v1beta1.AdvDeployment) { d.Spec.Topology.PodSets[0].Replicas.IntVal = 7 },
		"another one":  func(d *v1beta1.AdvDeployment) { d.Spec.Topology.PodSets[0].Meta["x"] = "y" },
		"a podSet":     func(d *v1beta1.AdvDeployment) { d.Spec.Topology.PodSets = d.Spec.Topology.PodSets[:1] },
		"the revision": func(d *v1beta1.AdvDeployment) { delete(d.Annotations, v1beta1.AnnotationRevision) },
		"the UID":      func(d *v1beta1.AdvDeployment) { delete(d.Labels, v1beta1.LabelAppSetUID) },
		"the fleet":    func(d *v1beta1.AdvDeployment) { delete(d.Labels, v1beta1.LabelFleetID) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, web, "one", "two").install()
			part := w.clusters["one"].Part.DeepCopy()
			want := part.DeepCopy()
			part.Labels["theirs"] = "stays"
			edit(part)
			part.Generation++
			w.clusters["one"].Part = part
			w.settle().expect("Correct one")
			got := w.clusters["one"].Part
			want.Labels["theirs"] = "stays"
			if diff := append(different("spec", plainOf(&want.Spec), plainOf(&got.Spec)), different("metadata", untyped(want.Labels), untyped(got.Labels))...); len(diff) > 0 {
				t.Errorf("%q", diff)
			}
			if len(w.events) != 1 || w.events[0].Reason != ReasonPartCorrected || !strings.HasPrefix(w.events[0].Message, "cluster One: somebody edited the part, which is put right: ") {
				t.Errorf("%+v", w.events)
			}
		})
	}
}

// TestOverruled: where admission of a member wants it otherwise, writing ends, and it is
// told.
func TestOverruled(t *testing.T) {
	w := newWorld(t, web, "one", "two").install()
	w.clusters["one"].Part.Spec.ServiceName = "theirs"
	w.overrule = map[string][]string{"one": {"spec.serviceName"}}
	w.settle().expect().says(v1beta1.PhaseDegraded, "6/6/0 v1/v2", "Refused: cluster One overrules its part: spec.serviceName")
}

// TestLost: a cluster whose definitions do not know a field of the part is not used: what
// the field asks for would be dropped in silence.
func TestLost(t *testing.T) {
	w := newWorld(t, web, "one", "two").install()
	w.lost = map[string][]string{"one": {"spec.topology.podSets[0].maxUnavailable"}}
	w.settle().expect().says(v1beta1.PhaseUnknown, "6/3/3 v1/v2", "ClusterUnfit: cluster One cannot be used: its AdvDeployments do not keep spec.topology.podSets[0].maxUnavailable: install the version of tapp there that the hub has")
	w.deleteAppSet()
	w.settle().expect("Delete one", "Delete two")
}

// TestFindsLost: what was applied, and did not come back.
func TestFindsLost(t *testing.T) {
	part := &v1beta1.AdvDeployment{}
	part.Spec.ServiceName = "theirs"
	part.Spec.Topology.PodSets = []v1beta1.PlacedPodSet{{}}
	applied := map[string]any{"spec": map[string]any{
		"serviceName": "ours", "paused": true, "nothing": map[string]any{}, "podSpec": map[string]any{"deployType": "tapp"},
		"topology": map[string]any{"podSets": []any{map[string]any{"ceiling": int64(1)}}},
	}}
	want := []string{"spec.paused", "spec.podSpec", "spec.topology.podSets[0].ceiling"}
	if got := Lost(applied, part); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestDefaulted: what admission of a member completes is no difference.
func TestDefaulted(t *testing.T) {
	w := newWorld(t, web, "one", "two").install()
	v1beta1.DefaultAdvDeployment(w.clusters["one"].Part)
	w.settle().expect()
}

// TestForeign: what is not ours keeps its name, and is not touched, nor waited for when
// the AppSet goes.
func TestForeign(t *testing.T) {
	w := newWorld(t, web, "one", "two")
	theirs := &v1beta1.AdvDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "theirs"}}
	w.clusters["two"].Part = theirs
	w.settle().expect("Own", "Create one").says(v1beta1.PhaseInstalling, "6/0/0",
		`ErrResourceExists: cluster two: AdvDeployment "web" already exists and is not of this AppSet: nobody's mark is on it. Delete or rename it, `+
			"or give it to the AppSet: label it workload.dmall.com/fleet-id=hub-1, and annotate it workload.dmall.com/appset=shop/web")
	if p := Compute(w.input()); p.Wait != waitTaken {
		t.Errorf("looks again after %v", p.Wait)
	}
	other := theirs.DeepCopy()
	other.Labels, other.Annotations = map[string]string{v1beta1.LabelFleetID: "hub-2"}, map[string]string{v1beta1.AnnotationAppSet: "shop/web"}
	w.clusters["two"].Part = other
	w.settle().expect().says(v1beta1.PhaseInstalling, "6/0/0",
		`ErrResourceExists: cluster two: AdvDeployment "web" already exists and is not of this AppSet: it is of AppSet shop/web in fleet hub-2. Delete or rename it`)
	w.deleteAppSet()
	w.settle().expect("Delete one")
	w.workIn("one")
	if w.settle().expect("Own"); w.app != nil || w.clusters["two"].Part.UID != "theirs" {
		t.Error("it is waited for")
	}
}

// TestTakenOver: the part of an earlier AppSet of this name is taken over, unless it was
// given up: then it goes before.
func TestTakenOver(t *testing.T) {
	w := newWorld(t, web, "one", "two").install()
	uid := w.clusters["one"].Part.UID
	again := func() {
		w.app = newWorld(t, web).app
		w.app.UID = "web-2"
	}
	again()
	w.settle().expect("Own", "Apply one", "Apply two").work().settle().says(v1beta1.PhaseRunning, "6/6/0 v1/v2", "")
	if part := w.clusters["one"].Part; part.UID != uid || part.Labels[v1beta1.LabelAppSetUID] != "web-2" {
		t.Errorf("%+v", part.ObjectMeta)
	}
	again()
	w.app.UID = "web-3"
	w.graves = []Tombstone{{AppSet: w.graveOf(), UID: "web-2", Cluster: "one", ClusterUID: "uid-one", Since: start}}
	w.settle().expect("Own", "Apply two", "Delete one")
	w.workIn("one")
	w.settle().expect("Create one", "Unbury one")
	if w.clusters["one"].Part.UID == uid {
		t.Error("it was taken over")
	}
}

// TestRestored: the AppSet of a hub that was restored from a backup writes nothing until
// it is accepted.
func TestRestored(t *testing.T) {
	w := newWorld(t, web, "one", "two").install()
	old := w.app.DeepCopy()
	w.edit(newVersion)
	w.install()
	w.app = old
	w.settle().expect().says(v1beta1.PhaseInvalid, "6/6/0 v1/v9",
		"HubRestored: cluster One has the part of generation 2, and this AppSet is of generation 1: the hub seems to have been restored from a backup. Nothing is written. "+
			"Bring the AppSet up to date, and then annotate it with workload.dmall.com/accept-generation=2")
	annotate(w, v1beta1.AnnotationAcceptGeneration, "2")
	w.settle().expect("Apply one").work().settle().expect("Apply two").work().settle().expect("Apply one", "Apply two").work().settle().expect().says(v1beta1.PhaseRunning, "6/6/0 v1/v2", "")
	w.edit(func(a *v1beta1.AppSet) { a.Generation = 1 })
	w.deleteAppSet()
	w.settle().expect("Delete one", "Delete two")
}

// TestSwapped: another cluster under the name of one that has a part gets nothing, and
// its emptiness is no evidence.
func TestSwapped(t *testing.T) {
	w := newWorld(t, web, "one", "two").install()
	w.clusters["two"].UID, w.clusters["two"].Part = "another", nil
	says := "ClusterMistaken: cluster two is mistaken for another one; nothing is written there: the part is in the one with the UID uid-two; if this one replaces it, label its registration with workload.dmall.com/replaces-uid=uid-two"
	w.settle().expect().says(v1beta1.PhaseUnknown, "6/3/3 v1", says)
	w.deleteAppSet()
	w.settle().expect("Delete one").work().settle().expect()
	if w.app == nil {
		t.Fatal("it is gone, and the part in the other cluster is not")
	}
	annotate(w, v1beta1.AnnotationAbandonClusters, "two")
	w.settle().expect("Bury two", "Own")
	if w.graves[0].ClusterUID != "uid-two" {
		t.Errorf("%+v", w.graves)
	}
}

// TestReplaced: a cluster that takes the place of another one, by a human's word, gets the
// part.
func TestReplaced(t *testing.T) {
	w := newWorld(t, web, "one", "two").install()
	w.clusters["two"].UID, w.clusters["two"].Part = "another", nil
	w.clusters["two"].Replaces = "uid-two"
	w.settle().expect("Own", "Create two").work().settle().says(v1beta1.PhaseRunning, "6/6/0 v1/v2", "")
	if got := w.app.Annotations[v1beta1.AnnotationClusters]; got != "one=uid-one,two=another" {
		t.Errorf("remembers %s", got)
	}
}

// TestReadyAndSaysSomething: what a cluster that answers has to say is told, and holds nothing up.
func TestReadyAndSaysSomething(t *testing.T) {
	w := newWorld(t, web, "one", "two").install()
	w.clusters["two"].Message = "its new kubeconfig is not used yet: Unauthorized"
	w.settle().expect().says(v1beta1.PhaseRunning, "6/6/0 v1/v2", "")
	if got := w.app.Status.AggrStatus.Clusters[1].Message; got != w.clusters["two"].Message {
		t.Errorf("%q is told", got)
	}
}

// TestDenied: why a cluster does not take the part.
func TestDenied(t *testing.T) {
	w := newWorld(t, web, "one", "two").install()
	w.edit(newVersion)
	w.refused = map[string]Refusal{"one": {Words: "denied the request: no"}, "two": {Words: "not found", NoNamespace: true}}
	p := Compute(w.input())
	w.app.Status = p.Status
	w.says(v1beta1.PhaseUpdating, "6/6/0 v1/v2", "Refused: cluster One refuses the part: denied the request: no; cluster two has no namespace shop: kubectl create namespace shop")
	if len(p.Events) != 2 || !slices.ContainsFunc(p.Events, func(e Event) bool { return e.Reason == ReasonNoNamespace }) {
		t.Errorf("%+v", p.Events)
	}
}
