package app

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/controller/status"
	"tkestack.io/tapp/controller/write"
	appv1 "tkestack.io/tapp/crd/app/v1"
	plan "tkestack.io/tapp/plan/app"
)

const (
	// statusInterval is how far apart two status writes of one App are at least.
	statusInterval = 500 * time.Millisecond
	// movingHold is how long a status is held back that only tells how far a rollout
	// is. Nobody is misled meanwhile: the stored status is about an earlier
	// generation, or tells of the rollout already.
	movingHold = 10 * time.Second
)

// statusHold holds back statuses that will soon be other ones.
type statusHold struct {
	last  time.Time // when one was written
	since time.Time // when one was first held back that tells of a rollout; zero: none is
}

// putStatus writes the status if it says something else than the stored one, or
// returns after how long to come again with the then current one.
func (c *Controller) putStatus(ctx context.Context, a *appv1.App, o *object, p plan.Plan) (time.Duration, error) {
	if equality.Semantic.DeepEqual(&a.Status, &p.Status) {
		o.status.since = time.Time{}
		return 0, nil
	}
	now := c.Clock.Now()
	if left := o.status.left(now, p.Moving && !claimsReady(a)); left > 0 {
		return left, nil
	}
	data, err := status.Patch(a.UID, &a.Status, &p.Status)
	if err != nil {
		return 0, fmt.Errorf("comparing the status: %w", err)
	}
	o.status = statusHold{last: now}
	stored, err := c.Apps.Apps(a.Namespace).Patch(ctx, a.Name, types.MergePatchType, data, metav1.PatchOptions{}, "status")
	switch {
	case apierrors.IsNotFound(err) || write.IsOtherUID(err):
		return 0, nil // the App is gone, or another one
	case apierrors.IsConflict(err): // others wrote to it all the while
		return statusInterval, nil
	case err != nil:
		return 0, fmt.Errorf("writing the status: %w", err)
	}
	o.guard.Wrote(storeApps, stored.ResourceVersion)
	c.Metrics.statusWrites.Inc()
	klog.FromContext(ctx).V(3).Info("Wrote status", "bytes", len(data), "ready", p.Status.Ready, "moving", p.Moving)
	return 0, nil
}

// left is how long to hold a status back.
func (h *statusHold) left(now time.Time, moving bool) time.Duration {
	left := statusInterval - now.Sub(h.last)
	switch {
	case !moving:
		h.since = time.Time{}
	case h.since.IsZero():
		h.since = now
		left = movingHold
	default:
		left = max(left, movingHold-now.Sub(h.since))
	}
	return left
}

// claimsReady says whether the stored status tells that the present generation is
// ready.
func claimsReady(a *appv1.App) bool {
	return a.Status.ObservedGeneration == a.Generation && meta.IsStatusConditionTrue(a.Status.Conditions, appv1.ConditionReady)
}
