package app

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/controller/status"
	appv1 "tkestack.io/tapp/crd/app/v1"
	plan "tkestack.io/tapp/plan/app"
)

const (
	// statusInterval is how far apart two status writes of one App are at least.
	statusInterval = 500 * time.Millisecond
	// statusHold is how long a status is held back at least that only tells how far a
	// rollout is. Nobody is misled meanwhile: the stored status is about an earlier
	// generation, or tells of the rollout already.
	statusHold = 10 * time.Second
)

// putStatus writes the status if it says something else than the stored one, or
// returns after how long to come again with the then current one.
func (c *Controller) putStatus(ctx context.Context, a *appv1.App, o *object, p *plan.Plan) (time.Duration, error) {
	next, moving := p.Status, p.Moving // what is held back must not hold the actions of its plan, too
	return c.statuses.Put(ctx, &o.status, status.Status{
		Object: klog.KObj(a), UID: a.UID, Stored: &a.Status, Next: &next, Deferrable: moving && !claimsReady(a),
		Patch: func(ctx context.Context, data []byte) error {
			stored, err := c.Apps.Apps(a.Namespace).Patch(ctx, a.Name, types.MergePatchType, data, metav1.PatchOptions{}, "status")
			if err != nil {
				return err
			}
			o.guard.Wrote(storeApps, stored.ResourceVersion)
			c.Metrics.statusWrites.Inc()
			klog.FromContext(ctx).V(3).Info("Wrote status", "bytes", len(data), "ready", next.Ready, "moving", moving)
			return nil
		},
	})
}

// flushStatuses writes the statuses that are held back, at the end of a run.
func (c *Controller) flushStatuses(ctx context.Context) {
	for _, o := range c.objects.All() {
		c.statuses.Flush(ctx, &o.status)
	}
}

// claimsReady says whether the stored status tells that the present generation is
// ready.
func claimsReady(a *appv1.App) bool {
	return a.Status.ObservedGeneration == a.Generation && meta.IsStatusConditionTrue(a.Status.Conditions, appv1.ConditionReady)
}
