package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"tkestack.io/tapp/controller/cache"
	"tkestack.io/tapp/crd/workload/v1beta1"
)

// ReasonOtherFleet is the reason for a member that another hub writes to.
const ReasonOtherFleet = "OtherFleetController"

const (
	// leaseFor is how long a hub has a member after it last said so.
	leaseFor = 15 * time.Second
	// leaseEvery is how often it says so.
	leaseEvery = 10 * time.Second
	// leaseLeft is how long a write may begin after the Lease was renewed: it ends before the
	// Lease does, since a request takes at most requestTimeout.
	leaseLeft = leaseFor - requestTimeout
)

// lease is the Lease of a member, in its namespace kube-system. The hub that has it
// writes there, and no other one does: a hub that was restored elsewhere, or a standby,
// would otherwise undo what the first one does. Who has it is a hub, and not a process of
// it: these have an election of their own.
//
//	the Lease says                              what is done
//	there is none, or it has no holder          taken
//	this hub                                    renewed
//	another hub, and it changed lately          nothing is written to the member
//	another hub, unchanged for leaseFor         taken
//
// How long it did not change is measured here, since clocks of clusters differ.
//
// It is written every few seconds, so that one which is older than what was written to it
// tells soon of a store that was restored.
type lease struct {
	client coordinationv1client.LeaseInterface
	holder string
	clock  clock.PassiveClock
	// restored is called when the store of the member went back.
	restored func()

	// asking has one place, which is taken while the Lease is read and written. Who waits
	// for it waits no longer than its request may.
	asking *semaphore.Weighted

	mu      sync.Mutex
	renewed time.Time // when the last renewal was begun; zero: it is not ours
	written string    // the version that it got then
	// other is a hub that has it, and since when its Lease is seen unchanged.
	other   string
	version string
	since   time.Time
}

// otherFleetError: another hub has the member.
type otherFleetError struct{ holder string }

func (e *otherFleetError) Error() string {
	return fmt.Sprintf("another fleet controller writes here, that of the hub with the UID %s: end it, or register this cluster with one hub only", e.holder)
}

// errRestored: what is known of the member may not be true any more.
var errRestored = errors.New("its store is older than what was written to it; what it has is listed anew")

func newLease(client coordinationv1client.LeaseInterface, holder string, c clock.PassiveClock, restored func()) *lease {
	return &lease{client: client, holder: holder, clock: c, restored: restored, asking: semaphore.NewWeighted(1)}
}

// hold makes sure that this hub has the member for at least as long as a request takes.
func (l *lease) hold(ctx context.Context) error {
	if l.holds() {
		return nil
	}
	if err := l.asking.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("waiting for the Lease %s: %w", v1beta1.MemberLease, err)
	}
	defer l.asking.Release(1)
	if l.holds() {
		return nil
	}
	return l.renew(ctx)
}

func (l *lease) holds() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.renewed.IsZero() && l.clock.Since(l.renewed) < leaseLeft
}

// keep renews the Lease when it is time.
func (l *lease) keep(ctx context.Context) error {
	if err := l.asking.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("waiting for the Lease %s: %w", v1beta1.MemberLease, err)
	}
	defer l.asking.Release(1)
	l.mu.Lock()
	due := l.renewed.IsZero() || l.clock.Since(l.renewed) >= leaseEvery-probeEvery/2
	l.mu.Unlock()
	if !due {
		return nil
	}
	return l.renew(ctx)
}

// renew reads the Lease, and takes it unless another hub has it.
func (l *lease) renew(ctx context.Context) error {
	began := l.clock.Now()
	found, err := l.client.Get(ctx, v1beta1.MemberLease, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		found, err = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.MemberLease}}, nil
	}
	if err != nil {
		return fmt.Errorf("reading the Lease %s: %w", v1beta1.MemberLease, err)
	}
	if l.isOld(found.ResourceVersion) {
		l.restored()
		return errRestored
	}
	if holder := ptr.Deref(found.Spec.HolderIdentity, ""); holder != "" && holder != l.holder && !l.abandoned(holder, found.ResourceVersion) {
		return &otherFleetError{holder}
	}
	if ptr.Deref(found.Spec.HolderIdentity, "") != l.holder {
		found.Spec.AcquireTime = &metav1.MicroTime{Time: began}
	}
	found.Spec.HolderIdentity, found.Spec.LeaseDurationSeconds = &l.holder, ptr.To(int32(leaseFor/time.Second))
	found.Spec.RenewTime = &metav1.MicroTime{Time: began}
	if found.ResourceVersion == "" {
		found, err = l.client.Create(ctx, found, metav1.CreateOptions{FieldManager: v1beta1.Component})
	} else {
		found, err = l.client.Update(ctx, found, metav1.UpdateOptions{FieldManager: v1beta1.Component})
	}
	if err != nil { // a conflict too: somebody else wrote meanwhile
		return fmt.Errorf("writing the Lease %s: %w", v1beta1.MemberLease, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed, l.written, l.other = began, found.ResourceVersion, ""
	return nil
}

// isOld says, once, whether a version of the Lease is older than the one that was written
// last. The Lease is gone if it is empty: somebody deleted it, or the store went back to
// before it was made.
func (l *lease) isOld(version string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !cache.Newer(l.written, version) {
		return false
	}
	l.renewed, l.written = time.Time{}, ""
	return true
}

// abandoned notes that another hub has the Lease, and says whether that did not renew it
// for as long as it lasts.
func (l *lease) abandoned(holder, version string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed = time.Time{}
	if l.other != holder || l.version != version {
		l.other, l.version, l.since = holder, version, l.clock.Now()
	}
	return l.clock.Since(l.since) >= leaseFor
}

// foreign is the hub that has the Lease; empty: no other one was seen with it.
func (l *lease) foreign() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.other
}
