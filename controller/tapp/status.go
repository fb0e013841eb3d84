package tapp

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/controller/status"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
)

const (
	// statusInterval is how far apart two status writes of one TApp are at least: at
	// most two a second, with a margin for the network's jitter. The status of 10,000
	// instances is half a megabyte, which the API server takes a second to store.
	statusInterval = 600 * time.Millisecond
	// statusHold is how long a deferrable status is held back at least.
	statusHold = time.Second
)

// putStatus writes a plan's status if it says something else than the stored one, or
// returns after how long to come again with the then current one.
func (c *Controller) putStatus(ctx context.Context, t *tappv1.TApp, o *object, p *plan.Plan) (time.Duration, error) {
	next := p.Status // what is held back must not hold the actions of its plan, too
	return c.statuses.Put(ctx, &o.status, status.Status{
		Object: klog.KObj(t), UID: t.UID, Stored: &t.Status, Next: &next, Deferrable: p.StatusDeferrable,
		Patch: func(ctx context.Context, data []byte) error {
			stored, err := c.TApps.TApps(t.Namespace).Patch(ctx, t.Name, types.MergePatchType, data, metav1.PatchOptions{}, "status")
			if err != nil {
				return err
			}
			o.guard.Wrote(storeTApps, stored.ResourceVersion)
			c.Metrics.statusWrites.Inc()
			klog.FromContext(ctx).V(3).Info("Wrote status", "bytes", len(data), "ready", next.ReadyReplicas, "updated", next.UpdatedReplicas,
				"replicas", next.Replicas, "appStatus", next.AppStatus)
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
