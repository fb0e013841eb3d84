package tapp

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/controller/status"
	"tkestack.io/tapp/controller/write"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
)

// statusInterval is how far apart two status writes of one TApp are at least: at
// most two a second, with a margin for the network's jitter. The status of 10,000
// instances is half a megabyte, which the API server takes a second to store: one
// write that takes long puts the next one off by statusShare times as long, so that
// telling of the work does not hold up the work.
//
// A status that tells only of work that goes on may become another one before anybody
// reads it, and to the API server it is as much work as half a pod. It waits for
// passingInterval, and then for its turn: those of all TApps together take at most one
// in passingShare of the time, which long writes use up soon. Then many TApps are worked
// on, and most of them get to their end meanwhile, which is told at once.
const (
	statusInterval  = 600 * time.Millisecond
	statusShare     = 5
	passingInterval = time.Second
	passingShare    = 20
	// passingApart is how far apart two turns are at most: one large TApp is worked on as
	// often as many small ones.
	passingApart = 5 * time.Second
	// passingSpare is how many turns need no waiting after a time without any: few TApps that
	// are on their way are told of, however long one write took.
	passingSpare = 10
	// passingWait is how long a status waits for its turn at most.
	passingWait = time.Minute
)

// statusThrottle holds back statuses that come too fast. Only the last one counts.
type statusThrottle struct {
	last    time.Time // when one was written
	took    time.Duration
	turn    time.Time // when what the stored one lacks may be told, if that passes; zero: not asked for
	held    *tappv1.TAppStatus
	heldFor *tappv1.TApp
}

// passing gives statuses that pass their turns, of all TApps.
type passing struct {
	turns *rate.Limiter
	took  atomic.Int64 // by the last status write, of whichever kind, in ns
}

func newPassing() *passing { return &passing{turns: rate.NewLimiter(0, passingSpare)} }

// turn is when a status that passes may be written: passingInterval from now, or when
// there is a turn, which is taken, used or not.
func (p *passing) turn(now time.Time) time.Time {
	p.turns.SetLimitAt(now, rate.Every(min(passingShare*time.Duration(p.took.Load()), passingApart)))
	reserved := p.turns.ReserveN(now, 1)
	wait := reserved.DelayFrom(now)
	if wait > passingWait {
		reserved.CancelAt(now)
		wait = passingWait
	}
	return now.Add(max(wait, passingInterval))
}

// putStatus writes a plan's status if it says something else than the stored one, or
// returns after how long to come again with the then current one.
func (c *Controller) putStatus(ctx context.Context, t *tappv1.TApp, o *object, p *plan.Plan) (time.Duration, error) {
	status := p.Status // what is held back must not hold the actions of its plan, too
	throttle, s := &o.status, &status
	throttle.held, throttle.heldFor = nil, nil
	if equality.Semantic.DeepEqual(&t.Status, s) {
		throttle.turn = time.Time{}
		return 0, nil
	}
	now := c.Clock.Now()
	left := throttle.last.Add(max(statusInterval, statusShare*throttle.took)).Sub(now)
	if p.StatusPasses {
		if throttle.turn.IsZero() {
			throttle.turn = c.passing.turn(now)
		}
		left = max(left, throttle.turn.Sub(now))
	}
	if left > 0 {
		throttle.held, throttle.heldFor = s, t
		return left, nil
	}
	throttle.last, throttle.turn = now, time.Time{}
	err := c.patchStatus(ctx, t, o, s)
	throttle.took = c.Clock.Since(now)
	c.passing.took.Store(int64(throttle.took))
	if errors.Is(err, errStale) {
		return staleAgain, nil
	}
	return 0, err
}

// patchStatus writes what differs between the stored status and s. A patch
// leaves fields alone that a newer program may have put there, and is small. That
// it is not conditional on a resourceVersion loses nothing: nobody else writes
// the status.
func (c *Controller) patchStatus(ctx context.Context, t *tappv1.TApp, o *object, s *tappv1.TAppStatus) error {
	data, err := status.Patch(t.UID, &t.Status, s)
	if err != nil {
		return fmt.Errorf("comparing the status: %w", err)
	}
	stored, err := c.TApps.TApps(t.Namespace).Patch(ctx, t.Name, types.MergePatchType, data, metav1.PatchOptions{}, "status")
	switch {
	case apierrors.IsNotFound(err), write.IsOtherUID(err):
		return nil // the TApp is gone, or another one
	case apierrors.IsConflict(err): // others wrote to it all the while
		return staleOr(err)
	case err != nil:
		return fmt.Errorf("writing the status: %w", err)
	}
	o.guard.Wrote(storeTApps, stored.ResourceVersion)
	c.Metrics.statusWrites.Inc()
	klog.FromContext(ctx).V(3).Info("Wrote status", "bytes", len(data), "ready", s.ReadyReplicas, "updated", s.UpdatedReplicas,
		"replicas", s.Replicas, "appStatus", s.AppStatus)
	return nil
}

// flushStatuses writes the statuses that are held back, at the end of a run.
func (c *Controller) flushStatuses(ctx context.Context) {
	for _, o := range c.objects.All() {
		if o.status.held == nil {
			continue
		}
		if ctx.Err() != nil {
			return // the next leader will write them
		}
		if err := c.patchStatus(ctx, o.status.heldFor, o, o.status.held); err != nil {
			klog.FromContext(ctx).Error(err, "Status lost", "tapp", klog.KObj(o.status.heldFor))
		}
	}
}
