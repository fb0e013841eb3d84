package tapp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/controller/shell"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// statusInterval is how far apart two status writes of one TApp are at least: at
// most two a second, with a margin for the network's jitter. The status of 10,000
// instances is half a megabyte, which the API server takes a second to store: one
// write that takes long puts the next one off by statusShare times as long, so that
// telling of the work does not hold up the work.
const (
	statusInterval = 600 * time.Millisecond
	statusShare    = 5
)

// statusThrottle holds back statuses that come too fast. Only the last one counts.
type statusThrottle struct {
	last    time.Time // when one was written
	took    time.Duration
	held    *tappv1.TAppStatus
	heldFor *tappv1.TApp
}

// putStatus writes the status if it says something else than the stored one, or
// returns after how long to come again with the then current one.
func (c *Controller) putStatus(ctx context.Context, t *tappv1.TApp, m *memory, s *tappv1.TAppStatus) (time.Duration, error) {
	m.status.held, m.status.heldFor = nil, nil
	if equality.Semantic.DeepEqual(&t.Status, s) {
		return 0, nil
	}
	now := c.Clock.Now()
	if left := max(statusInterval, statusShare*m.status.took) - now.Sub(m.status.last); left > 0 {
		m.status.held, m.status.heldFor = s, t
		return left, nil
	}
	m.status.last = now
	err := c.patchStatus(ctx, t, m, s)
	m.status.took = c.Clock.Since(now)
	if errors.Is(err, errStale) {
		return staleAgain, nil
	}
	return 0, err
}

// patchStatus writes what differs between the stored status and s. A patch
// leaves fields alone that a newer program may have put there, and is small. That
// it is not conditional on a resourceVersion loses nothing: nobody else writes
// the status.
func (c *Controller) patchStatus(ctx context.Context, t *tappv1.TApp, m *memory, s *tappv1.TAppStatus) error {
	data, err := shell.StatusPatch(t.UID, &t.Status, s)
	if err != nil {
		return fmt.Errorf("comparing the status: %w", err)
	}
	stored, err := c.TApps.TApps(t.Namespace).Patch(ctx, t.Name, types.MergePatchType, data, metav1.PatchOptions{}, "status")
	switch {
	case apierrors.IsNotFound(err), shell.IsOtherUID(err):
		return nil // the TApp is gone, or another one
	case apierrors.IsConflict(err): // others wrote to it all the while
		return staleOr(err)
	case err != nil:
		return fmt.Errorf("writing the status: %w", err)
	}
	m.guard.wroteTApp(stored.ResourceVersion)
	c.Metrics.statusWrites.Inc()
	klog.FromContext(ctx).V(3).Info("Wrote status", "bytes", len(data), "ready", s.ReadyReplicas, "updated", s.UpdatedReplicas,
		"replicas", s.Replicas, "appStatus", s.AppStatus)
	return nil
}

// flushStatuses writes the statuses that are held back, at the end of a run.
func (c *Controller) flushStatuses(ctx context.Context) {
	for _, m := range c.memories.All() {
		if m.status.held == nil {
			continue
		}
		if ctx.Err() != nil {
			return // the next leader will write them
		}
		if err := c.patchStatus(ctx, m.status.heldFor, m, m.status.held); err != nil {
			klog.FromContext(ctx).Error(err, "Status lost", "tapp", klog.KObj(m.status.heldFor))
		}
	}
}
