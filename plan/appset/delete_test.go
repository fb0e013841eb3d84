package appset

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// unheard is what a deletion says of a cluster that is not heard.
const unheard = "ClusterUnreachable: the deletion waits for cluster two, which is offline; it was seen last at 2026-11-01T11:59:00Z. " +
	"Wait until it is back, or give its part up: annotate the AppSet with workload.dmall.com/abandon-clusters=two"

// TestDeletionWaits: a cluster that is not heard holds the deletion, however empty it
// seems, and whatever has been forgotten.
func TestDeletionWaits(t *testing.T) {
	for name, forget := range map[string]func(*world){
		"nothing forgotten": func(*world) {},
		"part not cached":   func(w *world) { w.clusters["two"].Part = nil },
		"no status":         func(w *world) { w.app.Status = v1beta1.AppSetStatus{}; w.clusters["two"].Part = nil },
		"no annotation":     func(w *world) { delete(w.app.Annotations, v1beta1.AnnotationClusters); w.clusters["two"].Part = nil },
		"left the topology": func(w *world) {
			w.edit(func(a *v1beta1.AppSet) { a.Spec.ClusterTopology.Clusters = a.Spec.ClusterTopology.Clusters[:1] })
			w.clusters["two"].Part = nil
		},
		"replaced, and left the topology": func(w *world) { // as by kubectl replace
			w.app.Annotations, w.app.Finalizers = nil, nil
			w.edit(func(a *v1beta1.AppSet) { a.Spec.ClusterTopology.Clusters = a.Spec.ClusterTopology.Clusters[:1] })
			w.clusters["two"].Part = nil
			w.settle().expect("Own")
		},
		"neither, but listed": func(w *world) {
			w.app.Status = v1beta1.AppSetStatus{}
			delete(w.app.Annotations, v1beta1.AnnotationClusters)
			w.clusters["two"].Part = nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, web, "one", "two").install()
			w.silence("two", v1beta1.ClusterOffline)
			forget(w)
			w.deleteAppSet()
			w.settle().expect("Delete one")
			w.workIn("one")
			if w.settle().expect(); w.app == nil {
				t.Fatal("it is gone")
			}
			stalled := w.condition(v1beta1.ConditionStalled)
			if stalled.Reason+": "+stalled.Message != unheard {
				t.Errorf("%s: %s", stalled.Reason, stalled.Message)
			}
		})
	}
}

// TestDeletionStalls: what a part says that it stays for is told, and the deletion goes on when that
// is out of the way.
func TestDeletionStalls(t *testing.T) {
	w := newWorld(t, web, "one", "two").install()
	w.deleteAppSet()
	w.settle().expect("Delete one", "Delete two")
	part := w.clusters["two"].Part
	part.Status.ObservedGeneration = part.Generation
	part.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionStalled, Status: metav1.ConditionTrue, Reason: "HookFailed", Message: "a hook failed. Annotate it"}}
	w.settle().expect().says(v1beta1.PhaseDeleting, "6/6/0 v1/v2", "HookFailed: cluster two: the part stays: a hook failed. Annotate it")
	if w.work().settle(); w.app != nil {
		t.Error("it is still there")
	}
}

// TestDeletionWaitsForTheCache: a cluster that answers, and shows nothing new of its parts
// for too long, holds the deletion as a silent one does; one that was just connected to is
// only waited for.
func TestDeletionWaitsForTheCache(t *testing.T) {
	w := newWorld(t, web, "one", "two").install()
	w.clusters["two"].Certain = false
	w.deleteAppSet()
	w.settle().expect("Delete one")
	want := strings.Replace(unheard, "is offline; it was seen last at", "answers, but what it has is known only as of", 1)
	if stalled := w.condition(v1beta1.ConditionStalled); stalled.Reason+": "+stalled.Message != strings.Replace(want, "2026-11-01T11:59:00Z", since(w.clusters["two"].AsOf), 1) {
		t.Errorf("%s: %s", stalled.Reason, stalled.Message)
	}
	w.clusters["two"].AsOf = time.Time{}
	w.settle().expect()
	stalled, moving := w.condition(v1beta1.ConditionStalled), w.condition(v1beta1.ConditionReconciling)
	if stalled.Status == metav1.ConditionTrue || !strings.Contains(moving.Message, "cluster two is waited for: what it has is not known yet") {
		t.Errorf("%+v, %+v", stalled, moving)
	}
}

// TestSuspect: one probe that was lost is no reason to tell of a cluster what is not known.
func TestSuspect(t *testing.T) {
	w := newWorld(t, web, "one", "two").install()
	w.clusters["two"].State = v1beta1.ClusterSuspect
	w.settle().expect().says(v1beta1.PhaseRunning, "6/6/0 v1/v2", "")
}

// TestAbandoned: a cluster that a human gave up is not waited for. When it is back the
// part goes, and the tombstone.
func TestAbandoned(t *testing.T) {
	w := newWorld(t, web, "one", "two").install()
	w.silence("two", v1beta1.ClusterOffline)
	w.deleteAppSet()
	annotate(w, v1beta1.AnnotationAbandonClusters, "One, TWO")
	w.settle().expect("Delete one", "Bury two")
	w.workIn("one")
	last := w.input()
	if w.settle().expect("Own"); w.app != nil {
		t.Fatal("it is still there")
	}
	if len(w.graves) != 1 || w.graves[0] != (Tombstone{AppSet: w.graves[0].AppSet, UID: "web-1", Cluster: "two", ClusterUID: "uid-two", Since: start}) {
		t.Fatalf("%+v", w.graves)
	}
	returned := func() []Action {
		in := w.inputWithout(last)
		return Returned(in)
	}
	if got := returned(); len(got) > 0 {
		t.Errorf("not heard: %+v", got)
	}
	w.hear("two")
	got := returned()
	if len(got) != 1 || got[0].Op != Delete || got[0].UID != w.clusters["two"].Part.UID {
		t.Fatalf("%+v", got)
	}
	w.carryOut(got[0])
	if got := returned(); len(got) > 0 {
		t.Errorf("being deleted: %+v", got)
	}
	w.workIn("two")
	if got := returned(); len(got) != 1 || got[0].Op != Unbury {
		t.Errorf("gone: %+v", got)
	}
}

// TestAbandonedAndMadeAgain: the part of an AppSet that was given up says nothing of what another one
// of its name is to have.
func TestAbandonedAndMadeAgain(t *testing.T) {
	w := newWorld(t, web, "one", "two", "three").install()
	w.silence("two", v1beta1.ClusterOffline)
	w.deleteAppSet()
	annotate(w, v1beta1.AnnotationAbandonClusters, "two")
	w.settle().expect("Delete one", "Bury two")
	w.workIn("one")
	if w.settle().expect("Own"); w.app != nil {
		t.Fatal("it is still there")
	}
	again := newWorld(t, strings.NewReplacer("web-1", "web-2", "v1", "v5", "v2", "v5", "    - {name: two", "    - {name: three, podSets: [{name: web-c, replicas: 1, version: v5}]}\n    - {name: two").Replace(web))
	w.app, w.revisions = again.app, nil
	w.settle().expect("Own", "Create one", "Create three").work().settle().says(v1beta1.PhaseUnknown, "7/4/3 v2/v5", "")
	w.now = w.now.Add(time.Hour)
	w.settle().expect().says(v1beta1.PhaseUnknown, "7/4/3 v2/v5", "")
	for _, name := range []string{"one", "three"} {
		for _, p := range w.clusters[name].Part.Status.AggrStatus.PodSets {
			if p.Version != "v5" {
				t.Errorf("podSet %s of cluster %s has %s", p.Name, name, p.Version)
			}
		}
	}
	w.hear("two")
	w.settle().expect("Delete two").work().settle().expect("Create two", "Unbury two").work().settle().says(v1beta1.PhaseRunning, "7/7/0 v5", "")
}

func (w *world) inputWithout(last Input) Input {
	w.app = last.AppSet
	in := w.input()
	w.app, in.AppSet = nil, nil
	return in
}

// TestReturnsAmongOthers: under another name it is the same cluster, and another one under
// its name is not.
func TestReturnsAmongOthers(t *testing.T) {
	w := newWorld(t, web, "one", "two").install()
	w.graves = []Tombstone{{AppSet: w.graveOf(), UID: "web-1", Cluster: "gone", ClusterUID: "uid-two", Since: start}}
	w.clusters["gone"] = &Cluster{Name: "gone", UID: "another", State: v1beta1.ClusterReady, Certain: true, Part: w.clusters["one"].Part}
	last := w.input()
	got := Returned(w.inputWithout(last))
	if len(got) != 1 || got[0].Op != Delete || got[0].Cluster != "two" {
		t.Errorf("%+v", got)
	}
}

// TestOrphan: the parts become their users', without our marks and as they are.
func TestOrphan(t *testing.T) {
	w := newWorld(t, web, "one", "two").install()
	part := w.clusters["one"].Part.DeepCopy()
	part.Labels["theirs"] = "stays"
	w.clusters["one"].Part = part
	w.edit(func(a *v1beta1.AppSet) { a.Spec.DeletionPolicy = v1beta1.DeletionOrphan })
	w.deleteAppSet()
	if w.settle().expect("Release one", "Release two", "Own"); w.app != nil {
		t.Fatal("it is still there")
	}
	got := w.clusters["one"].Part
	if got.DeletionTimestamp != nil || len(got.Annotations) > 0 || len(got.Labels) != 1 || len(different("spec", plainOf(&part.Spec), plainOf(&got.Spec))) > 0 {
		t.Errorf("%+v", got.ObjectMeta)
	}
}

// TestOldFinalizer: that of the original systems goes when ours is there, others stay.
func TestOldFinalizer(t *testing.T) {
	w := newWorld(t, web, "one", "two")
	w.app.Finalizers = []string{v1beta1.LegacyFinalizer, "theirs"}
	w.install()
	if got := strings.Join(w.app.Finalizers, " "); got != "theirs "+v1beta1.Finalizer {
		t.Errorf("finalizers %s", got)
	}
}

// TestLeaves: clusters leave one at a time, and when the others are available; by the
// annotation at once.
func TestLeaves(t *testing.T) {
	three := strings.Replace(web, "    - {name: two", "    - {name: three, podSets: [{name: web-a, replicas: 1, version: v1}]}\n    - {name: two", 1)
	leave := func(a *v1beta1.AppSet) { a.Spec.ClusterTopology.Clusters = a.Spec.ClusterTopology.Clusters[:1] }
	t.Run("one at a time", func(t *testing.T) {
		w := newWorld(t, three, "one", "two", "three").install()
		w.clusters["one"].Part.Status.AggrStatus.PodSets[0].Available = 1
		w.edit(leave)
		w.settle().expect().says(v1beta1.PhaseScaling, "3/2/0 v1/v2", "")
		w.workIn("one")
		w.settle().expect("Delete three").says(v1beta1.PhaseMigrating, "3/3/0 v1/v2", "")
		w.work().settle().expect("Own", "Delete two").work().settle().expect("Own").says(v1beta1.PhaseRunning, "3/3/0 v1", "")
		if got := w.app.Annotations[v1beta1.AnnotationClusters]; got != "one=uid-one" {
			t.Errorf("remembers %s", got)
		}
	})
	t.Run("now", func(t *testing.T) {
		w := newWorld(t, three, "one", "two", "three").install()
		w.clusters["one"].Part.Status.AggrStatus.PodSets[0].Available = 1
		w.edit(leave)
		annotate(w, v1beta1.AnnotationLeave, v1beta1.LeaveNow)
		w.settle().expect("Delete three", "Delete two")
	})
	t.Run("silent", func(t *testing.T) {
		w := newWorld(t, three, "one", "two", "three").install()
		w.silence("two", v1beta1.ClusterOffline)
		w.edit(leave)
		w.settle().expect("Delete three").work()
		w.clusters["two"].Part = nil // as it may seem
		w.settle().expect("Own").says(v1beta1.PhaseMigrating, "3/3/0 v1", "")
		if got := w.app.Annotations[v1beta1.AnnotationClusters]; got != "one=uid-one,two=uid-two" {
			t.Errorf("remembers %s", got)
		}
		annotate(w, v1beta1.AnnotationAbandonClusters, "two")
		w.settle().expect("Bury two", "Own").says(v1beta1.PhaseRunning, "3/3/0 v1", "")
	})
	t.Run("comes back", func(t *testing.T) {
		w := newWorld(t, three, "one", "two", "three").install()
		w.silence("two", v1beta1.ClusterOffline)
		before := w.app.Spec.DeepCopy()
		w.edit(leave)
		annotate(w, v1beta1.AnnotationAbandonClusters, "two")
		w.settle().work().settle().work().settle()
		w.wrote = nil
		w.edit(func(a *v1beta1.AppSet) {
			a.Spec = *before
			metav1.SetMetaDataAnnotation(&a.ObjectMeta, v1beta1.AnnotationAbandonClusters, "")
		})
		w.hear("two")
		w.settle().work().settle().says(v1beta1.PhaseRunning, "7/7/0 v1/v2", "")
		if len(w.graves) > 0 {
			t.Errorf("%+v", w.graves)
		}
		w.expect("Own", "Create three", "Unbury two")
	})
}
