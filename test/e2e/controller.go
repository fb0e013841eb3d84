//go:build cluster

package e2e

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/test/cluster"
)

const (
	// ourAgent is how the controller's user agent begins.
	ourAgent = "tapp/"
	// leaseName is the lease that the leader holds.
	leaseNamespace, leaseName = "kube-system", "tapp-controller"
)

// process is a running `tapp controller`.
type process struct {
	*cluster.Process
	hasty bool // its flags give a busy machine no time to release the lease
}

// startController starts tapp, with further flags, and waits until it is ready to
// work.
func startController(ctx context.Context, flags ...string) (*process, error) {
	began := time.Now().Truncate(time.Microsecond) // as a lease says it
	started, err := suite.Launch("controller", append([]string{"--create-crd", "--v", "3"}, flags...)...)
	if err != nil {
		return nil, err
	}
	p := &process{started, len(flags) > 0}
	if err := p.WaitReady(ctx); err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	err = cluster.Poll(ctx, patience, func(ctx context.Context) error {
		if p.Ended() != nil {
			return nil // reported below
		}
		return ledSince(ctx, began)
	})
	if err = errors.Join(err, p.Ended()); err != nil {
		return nil, errors.Join(fmt.Errorf("tapp does not work: %w\n%s", err, p.Tail(4000)), p.Kill())
	}
	return p, nil
}

// stop ends tapp in order: it must exit with 0 and give its lease back, so that
// the next one can begin at once.
func (p *process) stop(ctx context.Context) error {
	if err := p.Stop(); err != nil || p.hasty {
		return err
	}
	lease, err := theLease(ctx)
	if err != nil {
		return err
	}
	if holder := lease.Spec.HolderIdentity; holder != nil && *holder != "" {
		return fmt.Errorf("the lease is still held by %s", *holder)
	}
	return nil
}

// theLease reads the leader's lease.
func theLease(ctx context.Context) (*coordinationv1.Lease, error) {
	lease, err := suite.Kube.CoordinationV1().Leases(leaseNamespace).Get(ctx, leaseName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the lease: %w", err)
	}
	return lease, nil
}

// ledSince returns nil when somebody has become the leader since.
func ledSince(ctx context.Context, since time.Time) error {
	lease, err := theLease(ctx)
	if err != nil {
		return err
	}
	if l := lease.Spec; l.HolderIdentity == nil || *l.HolderIdentity == "" || l.AcquireTime == nil || l.AcquireTime.Time.Before(since) {
		return fmt.Errorf("it does not lead: the lease is %+v", lease.Spec)
	}
	return nil
}
