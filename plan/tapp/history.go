package tapp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/revision"
)

// history is what a plan does with revisions.
type history struct {
	// revision is the name of the spec's revision; empty: not known.
	revision string
	actions  []Action
}

// keepHistory records the version of the spec, and forgets old ones. The newest
// revision has the highest number; a version that comes back takes its revision
// along, so that none is there twice.
func keepHistory(s *spec, c *clock, revisions []*appsv1.ControllerRevision) history {
	h := history{revision: s.tapp.Status.UpdateRevision}
	if s.frozen != "" {
		return h
	}
	var own []*appsv1.ControllerRevision
	for _, r := range revisions {
		if owner := metav1.GetControllerOfNoCopy(r); owner == nil || owner.UID == s.tapp.UID {
			own = append(own, r)
		}
	}
	slices.SortFunc(own, func(a, b *appsv1.ControllerRevision) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Name, b.Name))
	})
	if !s.isVersionRecorded(h.revision, own) {
		h.record(s, c, own)
	}
	h.forget(s, own)
	return h
}

// isVersionRecorded says whether the stored status names the revision of this very spec,
// and nothing is left to record: hashing all templates for every plan would be
// most of what it costs.
func (s *spec) isVersionRecorded(revision string, own []*appsv1.ControllerRevision) bool {
	if revision == "" || s.stored.Status.ObservedGeneration != s.tapp.Generation || len(own) == 0 {
		return false
	}
	newest := own[len(own)-1]
	return newest.Name == revision && metav1.GetControllerOfNoCopy(newest) != nil
}

func (h *history) record(s *spec, c *clock, own []*appsv1.ControllerRevision) {
	version := revision.OfDefaulted(s.tapp)
	hash, err := version.HashWith(s.hashes())
	if err != nil {
		return // a template that nobody uses may be beyond us; one that is used is a problem already
	}
	h.revision = s.tapp.Name + "-" + hash
	number := int64(1)
	if len(own) > 0 {
		number = own[len(own)-1].Revision + 1
	}
	at := slices.IndexFunc(own, func(r *appsv1.ControllerRevision) bool { return r.Name == h.revision })
	if at < 0 {
		raw, err := version.Data()
		if err != nil || !s.mayCreate(c) {
			return
		}
		h.actions = append(h.actions, Action{Op: OpCreateRevision, Reason: "NewVersion", Why: "the templates have not been like this before",
			Revision: h.newRevision(s.tapp, hash, number, raw)})
		return
	}
	has := own[at]
	if at == len(own)-1 {
		number = has.Revision
	}
	if number == has.Revision && metav1.GetControllerOfNoCopy(has) != nil {
		return
	}
	h.actions = append(h.actions, Action{Op: OpUpdateRevision, Reason: "VersionAgain", Why: fmt.Sprintf("the templates are those of revision %d again", has.Revision),
		Revision: has, Patch: revisionPatch(s.tapp, has, number)})
}

func (h *history) newRevision(t *tappv1.TApp, hash string, number int64, data []byte) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: h.revision, Namespace: t.Namespace,
			Labels:          map[string]string{tappv1.LabelTApp: t.Name, appsv1.ControllerRevisionHashLabelKey: hash},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(t, tappv1.GroupVersionKind())},
		},
		Data:     runtime.RawExtension{Raw: data},
		Revision: number,
	}
}

// revisionPatch is a merge patch. ownerReferences are a list, which it replaces:
// a revision without a controller that carries our label has no other owner.
func revisionPatch(t *tappv1.TApp, r *appsv1.ControllerRevision, number int64) []byte {
	patch := map[string]any{
		"metadata": map[string]any{
			"uid":             r.UID,
			"ownerReferences": []metav1.OwnerReference{*metav1.NewControllerRef(t, tappv1.GroupVersionKind())},
		},
		"revision": number,
	}
	raw, _ := json.Marshal(patch) // strings and numbers always marshal
	return raw
}

// forget deletes the oldest revisions beyond spec.revisionHistoryLimit. Those
// that the status names do not count: instances follow them.
func (h *history) forget(s *spec, own []*appsv1.ControllerRevision) {
	status := &s.stored.Status
	old := slices.DeleteFunc(slices.Clone(own), func(r *appsv1.ControllerRevision) bool {
		return r.Name == h.revision || r.Name == status.CurrentRevision || r.Name == status.UpdateRevision
	})
	limit := max(0, int(*s.tapp.Spec.RevisionHistoryLimit))
	for len(old) > limit {
		h.actions = append(h.actions, Action{Op: OpDeleteRevision, Revision: old[0], Reason: "HistoryLimit",
			Why: fmt.Sprintf("spec.revisionHistoryLimit is %d", limit)})
		old = old[1:]
	}
}
