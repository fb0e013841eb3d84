package appset

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
)

// restoredAs is the AppSet as a backup of it brings it back: under another UID, and with its
// revisions.
func (w *world) restoredAs(uid types.UID, generation int64) {
	former := w.app.UID
	w.app = w.app.DeepCopy()
	w.app.UID, w.app.Generation, w.app.Status = uid, 1, v1beta1.AppSetStatus{}
	annotate(w, v1beta1.AnnotationRestoredFrom, fmt.Sprintf("%s/%d", former, generation))
	annotate(w, v1beta1.AnnotationRestoring, "true")
	for i, r := range w.revisions {
		r = r.DeepCopy()
		r.Labels[v1beta1.LabelAppSetUID], r.OwnerReferences[0].UID = string(uid), uid
		w.revisions[i] = r
	}
}

// contents that the parts have, by cluster and podSet.
func (w *world) contents() string {
	out := ""
	for _, name := range slices.Sorted(maps.Keys(w.clusters)) {
		units, _, _ := podset.Placed(w.clusters[name].Part)
		for _, u := range units {
			out += fmt.Sprintf("%s/%s=%s ", name, u.PodSet.Name, u.Hash)
		}
	}
	return out
}

// TestRestoredFromBackup: nothing is done while the AppSet is being restored. Then its parts
// are taken over as they are, also in the midst of a rollout, which goes on where it was.
func TestRestoredFromBackup(t *testing.T) {
	w := newWorld(t, web, "one", "two").install()
	w.edit(func(a *v1beta1.AppSet) {
		newVersion(a)
		a.Spec.UpdateStrategy.MaxConcurrentClusters = nil
	})
	w.settle().expect("Apply one")
	record := func() string {
		ledger := podset.LedgerOf(w.app, w.revisions)
		text, _ := json.Marshal(ledger.Record())
		return string(text)
	}
	was, before := record(), w.contents()
	w.restoredAs("web-2", w.app.Generation)
	w.settle().expect()
	delete(w.app.Annotations, v1beta1.AnnotationRestoring)
	w.settle().expect("Apply one", "Apply two")
	if now := w.contents(); now != before {
		t.Errorf("the contents were %s, and are %s", before, now)
	}
	if now := record(); now != was {
		t.Errorf("the record was %s\nand is %s", was, now)
	}
	w.install().work().install().says(v1beta1.PhaseRunning, "6/6/0 v1/v9", "")
}

// TestRestoredFromOldBackup: parts that are newer than the backup stay as they are until a
// human has looked.
func TestRestoredFromOldBackup(t *testing.T) {
	w := newWorld(t, web, "one", "two").install()
	old, revisions := w.app.DeepCopy(), slices.Clone(w.revisions)
	w.edit(newVersion)
	w.install()
	w.app, w.revisions = old, revisions
	w.restoredAs("web-2", 1)
	delete(w.app.Annotations, v1beta1.AnnotationRestoring)
	w.settle().expect()
	stalled := w.condition(v1beta1.ConditionStalled)
	if want := "HubRestored: cluster One has the part of generation 2, and this AppSet was restored from a backup of generation 1. Nothing is written. " +
		"Bring the AppSet up to date, and then annotate it with workload.dmall.com/accept-generation=2"; stalled.Reason+": "+stalled.Message != want {
		t.Errorf("%s: %s", stalled.Reason, stalled.Message)
	}
	w.edit(newVersion)
	annotate(w, v1beta1.AnnotationAcceptGeneration, "2")
	w.settle().expect("Apply one", "Apply two").work().settle().says(v1beta1.PhaseRunning, "6/6/0 v1/v9", "")
}
