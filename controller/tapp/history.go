package tapp

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/controller/write"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
)

// readRevisions returns the revisions of the view with their data, which caches lack. They
// are read live once, and remembered for as long as plans ask for them.
func (c *Controller) readRevisions(ctx context.Context, v *view, o *object) ([]*appsv1.ControllerRevision, error) {
	isKnown := func(r *appsv1.ControllerRevision) bool { return o.data[r.UID].Raw != nil }
	if !slices.ContainsFunc(v.revisions, func(r *appsv1.ControllerRevision) bool { return !isKnown(r) }) && o.data != nil {
		out := make([]*appsv1.ControllerRevision, 0, len(v.revisions))
		for _, r := range v.revisions {
			with := *r
			with.Data = o.data[r.UID]
			out = append(out, &with)
		}
		return out, nil
	}
	list, err := c.Apps.ControllerRevisions(v.tapp.Namespace).List(ctx, metav1.ListOptions{LabelSelector: tappv1.LabelTApp + "=" + v.tapp.Name})
	if err != nil {
		return nil, fmt.Errorf("listing revisions live: %w", err)
	}
	o.data = make(map[types.UID]runtime.RawExtension, len(list.Items))
	out := make([]*appsv1.ControllerRevision, 0, len(list.Items))
	for i := range list.Items {
		o.data[list.Items[i].UID] = list.Items[i].Data
		out = append(out, &list.Items[i])
	}
	return out, nil
}

// createRevision POSTs a revision. One that exists already is fine if it is the
// TApp's: its name is the hash of what it holds.
func createRevision(ctx context.Context, w *writer, a *plan.Action) error {
	r, err := w.history.Create(ctx, a.Revision, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		if r, err = w.history.Get(ctx, a.Revision.Name, metav1.GetOptions{}); err != nil {
			return fmt.Errorf("reading the revision %s, which exists already: %w", a.Revision.Name, err)
		}
		if owner := metav1.GetControllerOfNoCopy(r); owner == nil || owner.UID != w.tapp.UID {
			return fmt.Errorf("the revision %s exists already, and does not belong to the TApp; delete it to make room", r.Name)
		}
	}
	if err != nil {
		return write.UnlessTerminating(err)
	}
	w.guard.Wrote(storeRevisions, r.ResourceVersion)
	return nil
}

func updateRevision(ctx context.Context, w *writer, a *plan.Action) error {
	r, err := w.history.Patch(ctx, a.Revision.Name, types.MergePatchType, a.Patch, metav1.PatchOptions{})
	if err != nil {
		return write.StaleOr(err)
	}
	w.guard.Wrote(storeRevisions, r.ResourceVersion)
	return nil
}

// deleteRevision leaves no version behind that the cache could be compared with.
// To ask again for what has gone is no fault.
func deleteRevision(ctx context.Context, w *writer, a *plan.Action) error {
	uid := a.UID()
	err := w.history.Delete(ctx, a.Revision.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

func pruneTemplates(ctx context.Context, w *writer, a *plan.Action) error {
	t, err := w.tapps.Patch(ctx, w.tapp.Name, types.MergePatchType, a.Patch, metav1.PatchOptions{})
	if err != nil {
		return write.StaleOr(err)
	}
	w.guard.Wrote(storeTApps, t.ResourceVersion)
	return nil
}
