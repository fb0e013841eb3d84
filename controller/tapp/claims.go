package tapp

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/controller/write"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
)

// createClaim POSTs a claim. One that exists already is not in the cache, which has
// only those with the label of their instance. It is labelled where it is the
// instance's: the pod that runs mounts it, or the TApp owns it, as tkestack/tapp's did.
// Any other is somebody's data, which the name alone does not give away.
func createClaim(ctx context.Context, w *writer, a *plan.Action) error {
	claim, err := w.claims.Create(ctx, a.Claim, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		if err == nil {
			w.guard.Wrote(storeClaims, claim.ResourceVersion)
		}
		return write.UnlessTerminating(err)
	}
	if a.Reason != plan.ReasonClaimUnlabelled {
		found, err := w.claims.Get(ctx, a.Claim.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return goneClaim(a)
		case err != nil:
			return err
		case found.Labels[tappv1.LabelInstanceID] == a.ID:
			w.guard.Wrote(storeClaims, found.ResourceVersion) // what follows is planned with it in view
			return fmt.Errorf("%w: claim %s exists already", write.ErrStale, a.Claim.Name)
		case !metav1.IsControlledBy(found, w.tapp):
			return fmt.Errorf("NameTaken: there is a claim %s without the label %s=%s: give it that label to have the instance use it, or delete it", a.Claim.Name, tappv1.LabelInstanceID, a.ID)
		}
	}
	label := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, tappv1.LabelInstanceID, a.ID)
	claim, err = w.claims.Patch(ctx, a.Claim.Name, types.MergePatchType, label, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return goneClaim(a)
	}
	if err != nil {
		return err
	}
	w.guard.Wrote(storeClaims, claim.ResourceVersion)
	return fmt.Errorf("%w: claim %s exists already", write.ErrStale, claim.Name)
}

func goneClaim(a *plan.Action) error {
	return fmt.Errorf("%w: claim %s went away just now", write.ErrStale, a.Claim.Name)
}

func updateClaim(ctx context.Context, w *writer, a *plan.Action) error {
	claim, err := w.claims.Patch(ctx, a.Claim.Name, types.StrategicMergePatchType, a.Patch, metav1.PatchOptions{})
	if err != nil {
		return write.StaleOr(err)
	}
	w.guard.Wrote(storeClaims, claim.ResourceVersion)
	return nil
}

// deleteClaim deletes this very claim, and not one whose version the plan has not
// seen: it may have been given to somebody else by now.
func deleteClaim(ctx context.Context, w *writer, a *plan.Action) error {
	uid := a.UID()
	err := w.claims.Delete(ctx, a.Claim.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &a.Claim.ResourceVersion}})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		return fmt.Errorf("%w: %s", write.ErrStale, err.Error())
	}
	return err
}
