package tapp

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/controller/write"
	plan "tkestack.io/tapp/plan/tapp"
)

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
