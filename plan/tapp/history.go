package tapp

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/plan/kept"
	"tkestack.io/tapp/plan/revision"
)

// history is what a plan does with revisions.
type history struct {
	// revision is the name of the spec's revision; empty: not known.
	revision string
	actions  []Action
	// unread: what may be forgotten cannot be told before the revisions are read.
	unread bool
}

// keepHistory records the version of the spec, and forgets old ones. The newest
// revision has the highest number; a version that comes back takes its revision
// along, so that none is there twice.
func keepHistory(s *spec, c *clock, former *kept.Templates, own []*appsv1.ControllerRevision, all []*instance) history {
	h := history{revision: s.tapp.Status.UpdateRevision}
	if s.frozen != "" {
		return h
	}
	if !revision.IsRecorded(s.stored, h.revision, own) {
		h.record(s, c, own)
	}
	h.forget(s, former, own, all)
	return h
}

func (h *history) record(s *spec, c *clock, own []*appsv1.ControllerRevision) {
	version := revision.OfDefaulted(s.tapp)
	hash, err := version.HashWith(s.hashes())
	if err != nil {
		return // a template that nobody uses may be beyond us; one that is used is a problem already
	}
	h.revision = revision.Name(s.tapp, hash)
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
			Revision: revision.New(s.tapp, hash, number, raw)})
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
		Revision: has, Patch: revision.Adopt(s.tapp, has, number)})
}

// forget deletes the oldest revisions beyond spec.revisionHistoryLimit. Those that the
// status names do not count, and neither do those whose templates instances have: they
// follow them.
func (h *history) forget(s *spec, former *kept.Templates, own []*appsv1.ControllerRevision, all []*instance) {
	status := &s.stored.Status
	old := slices.DeleteFunc(slices.Clone(own), func(r *appsv1.ControllerRevision) bool {
		return r.Name == h.revision || r.Name == status.CurrentRevision || r.Name == status.UpdateRevision
	})
	limit := max(0, int(*s.tapp.Spec.RevisionHistoryLimit))
	if used := s.inUse(all); len(old) > limit && len(used) > 0 {
		if h.unread = former == nil; h.unread {
			return
		}
		old = slices.DeleteFunc(old, func(r *appsv1.ControllerRevision) bool { return former.IsNewestOf(r.Revision, used) })
	}
	for len(old) > limit {
		h.actions = append(h.actions, Action{Op: OpDeleteRevision, Revision: old[0], Reason: "HistoryLimit",
			Why: fmt.Sprintf("spec.revisionHistoryLimit is %d", limit)})
		old = old[1:]
	}
}
