//go:build cluster

package failover

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/test/cluster"
)

// leaseLog is all that the Lease of the election has said, in order.
type leaseLog struct {
	rig *rig

	mu      sync.Mutex
	records []coordinationv1.LeaseSpec
}

// followLease begins before the first replica does.
func followLease(r *rig) *leaseLog {
	r.Helper()
	l := &leaseLog{rig: r}
	w, err := r.Kube.CoordinationV1().Leases(r.NS).Watch(r.Context(), metav1.ListOptions{})
	if err != nil {
		r.Fatal(err)
	}
	go func() {
		for e := range w.ResultChan() {
			if lease, ok := e.Object.(*coordinationv1.Lease); ok {
				l.mu.Lock()
				l.records = append(l.records, lease.Spec)
				l.mu.Unlock()
			}
		}
	}()
	return l
}

func (l *leaseLog) all() []coordinationv1.LeaseSpec {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.records)
}

func holderOf(s *coordinationv1.LeaseSpec) string {
	if s.HolderIdentity == nil {
		return ""
	}
	return *s.HolderIdentity
}

// holder is who had the Lease last.
func (l *leaseLog) holder() string {
	records := l.all()
	for i := range slices.Backward(records) {
		if h := holderOf(&records[i]); h != "" {
			return h
		}
	}
	return ""
}

// handover waits until another one than the holder has the Lease, and says what was wrong
// with how it got it.
func (l *leaseLog) handover(from string, clean bool) string {
	l.rig.Helper()
	var records []coordinationv1.LeaseSpec
	l.rig.Eventually("another one has the Lease", func(context.Context) error {
		records = l.all()
		h := l.holder()
		return cluster.When(h == "" || h == from, fmt.Sprintf("%q has it", h))
	})
	last := -1 // record of the one before
	for i := range records {
		if holderOf(&records[i]) == from {
			last = i
		}
	}
	if last < 0 {
		return fmt.Sprintf("%q never had the Lease", from)
	}
	next := last + 1
	for holderOf(&records[next]) == "" {
		next++
	}
	before, after := &records[last], &records[next]
	switch released := next > last+1; {
	case clean && !released:
		return "the leader stopped in order, and did not release the Lease"
	case released:
		return ""
	}
	expires := before.RenewTime.Add(time.Duration(*before.LeaseDurationSeconds) * time.Second)
	if after.AcquireTime.Time.Before(expires) {
		return fmt.Sprintf("another one took the Lease at %v, which was the killed leader's until %v", after.AcquireTime.Time, expires)
	}
	return ""
}
