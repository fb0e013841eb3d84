package tapp

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/controller/write"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/claim"
	plan "tkestack.io/tapp/plan/tapp"
)

// createClaim POSTs a claim. One that exists already is not in the cache, which has
// only those with the label of their instance. Whose it is is judged as the planner does:
// what is not proven another's is labelled and marked, and used from then on.
func createClaim(ctx context.Context, w *writer, a *plan.Action) error {
	made, err := w.claims.Create(ctx, a.Claim, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		if err == nil {
			w.guard.Wrote(storeClaims, made.ResourceVersion)
		}
		return write.UnlessTerminating(err)
	}
	found, err := w.claims.Get(ctx, a.Claim.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: claim %s went away just now", write.ErrStale, a.Claim.Name)
	}
	if err != nil {
		return err
	}
	if found.Labels[tappv1.LabelInstanceID] != "" {
		w.guard.Wrote(storeClaims, found.ResourceVersion) // what follows is planned with it in view
		return fmt.Errorf("%w: claim %s exists already", write.ErrStale, a.Claim.Name)
	}
	return w.takeClaim(ctx, a, found)
}

// takeClaim labels and marks a claim of the instance that is not proven another's.
func (w *writer) takeClaim(ctx context.Context, a *plan.Action, found *corev1.PersistentVolumeClaim) error {
	us := w.us()
	verdict, err := w.judgeClaim(ctx, &us, found, a.ID)
	if err != nil {
		return err
	}
	patch, _ := us.Take(found, a.ID, verdict)
	if verdict.Use == claim.Taken {
		if a.Reason != plan.ReasonClaimUnlabelled {
			return fmt.Errorf("NameTaken: %s; the instance waits until it is gone", verdict.Why)
		}
		// A pod mounts it already: in the cache it is told of, and nothing is written again.
		patch = fmt.Appendf(nil, `{"metadata":{"uid":%q,"labels":{%q:%q}}}`, found.UID, tappv1.LabelInstanceID, a.ID)
	}
	labelled, err := w.claims.Patch(ctx, a.Claim.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return &partError{plan.OpUpdateClaim, write.StaleOr(err)}
	}
	w.guard.Wrote(storeClaims, labelled.ResourceVersion)
	return fmt.Errorf("%w: claim %s exists already", write.ErrStale, labelled.Name)
}

// judgeClaim tells whose a claim is that the cache lacks.
func (w *writer) judgeClaim(ctx context.Context, us *claim.Workload, found *corev1.PersistentVolumeClaim, id string) (claim.Verdict, error) {
	v := us.Judge(found, id, nil)
	if v.Use != claim.Unclear {
		return v, nil
	}
	others, err := w.workloads(ctx, v.Unread)
	if err != nil {
		return v, err
	}
	return us.Judge(found, id, others), nil
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
