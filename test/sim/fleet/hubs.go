package fleet

import (
	"fmt"
	"math/rand/v2"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/test/sim/apiserver"
)

const (
	// otherHub is the name by which another hub has the Lease of a member.
	otherHub = "another-hub"
	// leaseTime is how long a hub has a member after it last said so, and leaseEvery how often
	// the other hub does.
	leaseTime, leaseEvery = 15 * time.Second, 5 * time.Second
)

var leaseKey = apiserver.KeyOf(metav1.NamespaceSystem, v1beta1.MemberLease)

// contend is what another hub does about a member that it has registered, too: it takes the
// Lease where nobody has it, and renews it; nil: nothing.
func (w *world) contend(c *cluster) func() {
	if !w.is(anotherHub, c.name) {
		return nil
	}
	lease, ok := apiserver.Find[*coordinationv1.Lease](c.Store, apiserver.Leases, leaseKey)
	set := func(l *coordinationv1.Lease) {
		l.Spec.HolderIdentity, l.Spec.RenewTime = ptr.To(otherHub), &metav1.MicroTime{Time: w.now()}
	}
	switch {
	case !ok:
		return func() {
			made := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: v1beta1.MemberLease}}
			set(made)
			_, _ = c.Create(apiserver.Leases, made, w.as(otherHub))
		}
	case isHeld(lease, otherHub, w.now(), leaseEvery), holderOf(lease) != otherHub && isHeld(lease, holderOf(lease), w.now(), leaseTime):
		return nil
	}
	return func() {
		if holderOf(lease) != otherHub {
			w.coverage["another hub takes a member over"]++
		}
		_, _ = c.Update(apiserver.Leases, leaseKey, "", w.as(otherHub), func(o object) error {
			set(o.(*coordinationv1.Lease))
			return nil
		})
	}
}

func holderOf(l *coordinationv1.Lease) string { return ptr.Deref(l.Spec.HolderIdentity, "") }

// isHeld says whether somebody has a Lease, and renewed it within so long.
func isHeld(l *coordinationv1.Lease, holder string, now time.Time, within time.Duration) bool {
	return holderOf(l) == holder && l.Spec.RenewTime != nil && now.Sub(l.Spec.RenewTime.Time) < within
}

// judgeLease is F7: a process takes no Lease that another hub has.
func (w *world) judgeLease(c *cluster, change *apiserver.Change) error {
	before, had := change.Before.(*coordinationv1.Lease)
	if had && apiserver.Key(before) == leaseKey && isHeld(before, otherHub, w.now(), leaseTime) {
		return fmt.Errorf("F7: the Lease of %s is taken from another hub, which renewed it %s ago", c.name, w.now().Sub(before.Spec.RenewTime.Time))
	}
	return nil
}

// judgeHubs is F7: nothing is written to a member that another hub has. What a process gave up
// may arrive whenever it does.
func (w *world) judgeHubs(c *cluster, r *request) error {
	lease, ok := apiserver.Find[*coordinationv1.Lease](c.Store, apiserver.Leases, leaseKey)
	if !ok || r.abandoned.Load() || r.replica.IsDead() {
		return nil
	}
	if isHeld(lease, otherHub, w.now(), leaseTime) {
		return fmt.Errorf("F7: %s is written to, and another hub has it, and renewed its Lease %s ago", c.name, w.now().Sub(lease.Spec.RenewTime.Time))
	}
	if holderOf(lease) != otherHub && w.coverage["another hub takes a member over"] > 0 {
		w.coverage["F7 judged, after another hub"]++
	}
	return nil
}

// contend has another hub take a member: before ours knows it, or while ours does not reach it.
// Meanwhile users ask for more, and processes end.
func (p *Plan) contend(rng *rand.Rand) {
	p.begin(3, 420)
	n := rng.IntN(3)
	if rng.IntN(3) == 0 {
		p.strikes(0, anotherHub, of(n, 120+rng.IntN(60)))
	} else {
		p.strikes(80, []string{down, cutThere}[rng.IntN(2)], of(n, 60+rng.IntN(30)))
		p.strikes(81, anotherHub, of(n, 150+rng.IntN(80)))
		p.strikes(95, clockJump, 5+rng.IntN(4))
	}
	if rng.IntN(2) == 0 {
		p.strikes(150+rng.IntN(60), orderly, 0)
	}
	for range 3 {
		p.edits(100+rng.IntN(250), []string{"image", "scale", "scale all", "drop cluster", "add cluster", "delete"}[rng.IntN(6)], rng.IntN(60), rng.IntN(60))
	}
	p.edits(110+rng.IntN(60), "image", 0, rng.IntN(60))
	p.sort()
}
