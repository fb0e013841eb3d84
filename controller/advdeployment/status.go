package advdeployment

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/controller/status"
	"tkestack.io/tapp/crd/workload/v1beta1"
	plan "tkestack.io/tapp/plan/advdeployment"
)

const (
	// statusInterval is how far apart two status writes of one AdvDeployment are at least.
	statusInterval = 500 * time.Millisecond
	// statusHold is how long a status that tells only of progress is held back at least. The
	// stored status is not wrong meanwhile: it is about an earlier generation, or says that
	// a rollout is under way.
	statusHold = 10 * time.Second
)

// putStatus writes the status if it differs from the stored one. If the write has to wait, it
// returns for how long.
func (c *Controller) putStatus(ctx context.Context, d *v1beta1.AdvDeployment, o *object, p *plan.Plan) (time.Duration, error) {
	next, moving := p.Status, p.Moving // what is held back must not hold the actions of its plan, too
	return c.statuses.Put(ctx, &o.status, status.Status{
		Object: klog.KObj(d), UID: d.UID, Stored: &d.Status, Next: &next, Deferrable: moving && !claimsReady(d),
		Patch: func(ctx context.Context, data []byte) error {
			stored, err := c.AdvDeployments.AdvDeployments(d.Namespace).Patch(ctx, d.Name, types.MergePatchType, data, metav1.PatchOptions{}, "status")
			if err != nil {
				return err
			}
			o.guard.Wrote(storeOwn, stored.ResourceVersion)
			c.Metrics.statusWrites.Inc()
			klog.FromContext(ctx).V(3).Info("Wrote status", "bytes", len(data), "status", next.AggrStatus.Status, "moving", moving)
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
func claimsReady(d *v1beta1.AdvDeployment) bool {
	return d.Status.ObservedGeneration == d.Generation && meta.IsStatusConditionTrue(d.Status.Conditions, v1beta1.ConditionReady)
}
