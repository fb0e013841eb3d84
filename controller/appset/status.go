package appset

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/controller/status"
	"tkestack.io/tapp/crd/workload/v1beta1"
	plan "tkestack.io/tapp/plan/appset"
)

const (
	// statusInterval is how far apart two status writes of one AppSet are at least.
	statusInterval = 500 * time.Millisecond
	// statusHold is how long a status that tells only of progress is held back at least.
	statusHold = 10 * time.Second
)

// deferrablePhases are those in which a status may wait if only its numbers differ.
var deferrablePhases = []v1beta1.Phase{v1beta1.PhaseInstalling, v1beta1.PhaseUpdating, v1beta1.PhaseScaling, v1beta1.PhaseMigrating, v1beta1.PhaseDeleting}

// putStatus writes the status if it differs from the stored one. If the write has to wait, it
// returns for how long.
func (c *Controller) putStatus(ctx context.Context, a *v1beta1.AppSet, o *object, p *plan.Plan) (time.Duration, error) {
	next := p.Status
	stored, phase := &a.Status.AggrStatus, next.AggrStatus.Status
	return c.statuses.Put(ctx, &o.status, status.Status{
		Object: klog.KObj(a), UID: a.UID, Stored: &a.Status, Next: &next,
		Deferrable: p.Moving && phase == stored.Status && slices.Contains(deferrablePhases, phase),
		Patch: func(ctx context.Context, data []byte) error {
			stored, err := c.AppSets.AppSets(a.Namespace).Patch(ctx, a.Name, types.MergePatchType, data, metav1.PatchOptions{}, "status")
			if err != nil {
				return err
			}
			o.guard.Wrote(storeAppSets, stored.ResourceVersion)
			c.Metrics.statusWrites.Inc()
			klog.FromContext(ctx).V(3).Info("Wrote status", "bytes", len(data), "phase", phase)
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
