package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/fleet/health"
)

const (
	// reflectorBackoff between lists that fail. The probes say when a member is away.
	backoffFirst = 500 * time.Millisecond
	backoffMax   = 5 * time.Second
)

var (
	errMistaken = errors.New("another cluster answers under this name")
	errNotKept  = errors.New("its identity is not kept with the registration yet")
)

// owner of a session.
type owner interface {
	// identity that the member has to have; empty: none is known.
	identity() types.UID
	// contact is told who answered. An error says that the session must not go on with it.
	contact(ctx context.Context, uid types.UID) error
	// changed is called after anything about the session changed.
	changed(s *session)
	// partChanged is called after a part of it changed.
	partChanged(s *session, key types.NamespacedName)
}

// session is one connection to a member, and what came over it.
type session struct {
	owner      owner
	clock      clock.WithTicker
	timeout    time.Duration // of a probe
	every      time.Duration // a probe
	selector   string
	contain    func(f func() error) error
	connection *connection
	parts      *parts
	// lease of the member; nil: none is asked for. leading says whether to keep it.
	lease   *lease
	leading func() bool
	cancel  context.CancelFunc
	// lost: a watch could not be begun since the last list.
	lost atomic.Bool

	mu      sync.Mutex
	machine health.Machine
	found   types.UID // who answered last
	// unleased says why the Lease of the member cannot be had; empty: it is, or was not asked for.
	unleased string
	renewed  time.Time
	stop     context.CancelFunc // of the reflector; nil: none runs
}

// run probes, and watches while the member answers, until ctx ends.
func (s *session) run(ctx context.Context) {
	defer s.connection.close()
	var watching sync.WaitGroup
	defer watching.Wait()
	defer s.stopWatching()
	for ctx.Err() == nil {
		began := s.clock.Now()
		err := s.contain(func() error {
			s.whileProbing(ctx)
			if ctx.Err() == nil {
				s.keepLease(ctx) // it may tell that the store went back
				s.direct(ctx, &watching)
			}
			return nil
		})
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.broken(ctx, err)
		}
		s.owner.changed(s)
		s.rest(ctx, began.Add(s.every))
	}
}

// broken notes that a bug ended what was done for the member. It is tried again.
func (s *session) broken(ctx context.Context, err error) {
	klog.FromContext(ctx).Error(err, "A bug: the work for a cluster ended")
	s.stopWatching()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine.Listed(s.clock.Now(), health.Result{Outcome: health.Refused, Reason: ReasonInternal, Message: "this controller failed there, see its log: that is a bug"})
}

// keepLease renews the Lease of a member that answers. Why it cannot be had is told by the
// member's state.
func (s *session) keepLease(ctx context.Context) {
	if s.lease == nil || !s.leading() {
		return
	}
	s.mu.Lock()
	state, _, _ := s.machine.State(s.clock.Now())
	mistaken := s.isMistaken()
	s.mu.Unlock()
	if mistaken || state != health.Ready {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	s.leased(ctx, s.lease.keep(ctx))
}

// restored is called when the store of the member went back: a watch from a version to come
// shows nothing, and what it has shown may not be true any more.
func (s *session) restored() {
	s.lost.Store(true)
	s.mu.Lock()
	s.machine.Lost()
	s.mu.Unlock()
	s.stopWatching()
	s.owner.changed(s)
}

// leased notes what asking for the Lease came to.
func (s *session) leased(ctx context.Context, err error) {
	s.mu.Lock()
	before := s.unleased
	s.unleased = ""
	var other *otherFleetError
	switch {
	case errors.As(err, &other):
		s.unleased = other.Error()
	case apierrors.IsForbidden(err):
		s.unleased = "our rights there do not suffice: " + words(err)
	case err != nil && ctx.Err() == nil:
		// Whether it answers is for the probes to say.
		s.unleased = before
		klog.FromContext(ctx).V(2).Info("The Lease of the cluster is not renewed", "err", err)
	case err != nil:
		s.unleased = before
	}
	changed := before != s.unleased
	s.mu.Unlock()
	if changed {
		s.owner.changed(s)
	}
}

// direct starts and stops the watch by what the last probe said.
func (s *session) direct(ctx context.Context, watching *sync.WaitGroup) {
	now := s.clock.Now()
	asOf, _ := s.parts.truth()
	s.mu.Lock()
	state, _, _ := s.machine.State(now)
	mistaken, silent, refusing, running := s.isMistaken(), s.machine.Silent(), s.machine.Refusing(), s.stop != nil
	old := now.Sub(asOf) > health.FreshWithin && now.Sub(s.renewed) > health.FreshWithin
	outdated := s.machine.Outdated(s.renewed)
	s.mu.Unlock()
	switch {
	case mistaken, refusing, state == health.Offline && silent:
		// Who comes back lists anew.
		s.stopWatching()
		if mistaken {
			s.mu.Lock()
			s.machine.Lost()
			s.mu.Unlock()
		}
		return
	case running && state == health.Ready && old:
		// The probes are well and the watch is dumb: it is begun anew.
		klog.FromContext(ctx).Info("The watch has shown nothing for too long; beginning it anew")
		s.stopWatching()
	case running && outdated:
		s.stopWatching()
	case running || silent:
		return
	}
	s.watch(ctx, now, watching)
}

func (s *session) watch(ctx context.Context, now time.Time, watching *sync.WaitGroup) {
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	s.stop, s.renewed = cancel, now
	s.mu.Unlock()
	// Why a list fails is told by the member's state, and not every few seconds.
	logger := logr.Discard()
	ctx = klog.NewContext(ctx, logger)
	reflector := toolscache.NewReflectorWithOptions(s.listWatch(), &v1beta1.AdvDeployment{}, s.parts, toolscache.ReflectorOptions{
		Logger: &logger, Name: "fleet", TypeDescription: v1beta1.KindAdvDeployment,
		Backoff: &wait.Backoff{Duration: backoffFirst, Factor: 2, Jitter: 0.5, Cap: backoffMax, Steps: 10},
	})
	watching.Go(func() {
		defer cancel()
		err := s.contain(func() error {
			reflector.RunWithContext(ctx)
			return nil
		})
		if err != nil {
			s.broken(ctx, err)
			s.owner.changed(s)
		}
	})
}

func (s *session) stopWatching() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop != nil {
		s.stop()
		s.stop = nil
		s.connection.watches.gate.close()
	}
}

// listWatch reads the parts. What answers was verified by the gate.
func (s *session) listWatch() toolscache.ListerWatcher {
	all := s.connection.watches.parts.AdvDeployments(metav1.NamespaceAll)
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			ctx, cancel := context.WithTimeout(ctx, listTimeout)
			defer cancel()
			o.LabelSelector = s.selector
			if o.ResourceVersion == "0" {
				o.ResourceVersion = "" // a cache of the server's may be old, and absence in it proves nothing
			}
			s.parts.listing()
			s.lost.Store(false)
			list, err := all.List(ctx, o)
			if err != nil {
				s.lost.Store(true)
				s.failed(ctx, err)
				return nil, err
			}
			return list, nil
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			// A store that was restored while nobody answered, or that of another cluster, is at
			// an older version, and a watch from a version to come shows nothing until it is
			// reached.
			expired := apierrors.NewResourceExpired("the server was away: what it has is listed anew")
			if s.lost.Swap(false) {
				return nil, expired
			}
			if o.SendInitialEvents != nil && *o.SendInitialEvents {
				s.parts.listing()
			}
			o.LabelSelector, o.AllowWatchBookmarks = s.selector, true
			w, err := all.Watch(ctx, o)
			switch {
			case err != nil:
				s.lost.Store(true)
				s.failed(ctx, err)
				return nil, err
			case s.lost.Swap(false): // another cluster has answered just now
				w.Stop()
				return nil, expired
			}
			return w, nil
		},
	}
}

func (s *session) failed(ctx context.Context, err error) {
	if ctx.Err() != nil || errors.Is(err, errMistaken) {
		return
	}
	s.mu.Lock()
	s.machine.Listed(s.clock.Now(), judge(err))
	s.mu.Unlock()
	s.owner.changed(s)
}

func (s *session) listedAnew() {
	s.mu.Lock()
	if !s.isMistaken() {
		s.machine.Listed(s.clock.Now(), health.Result{})
	}
	s.mu.Unlock()
	s.owner.changed(s)
}

// verify asks who answers over a connection.
func (s *session) verify(ctx context.Context, core corev1client.CoreV1Interface) error {
	var system corev1.Namespace
	err := core.RESTClient().Get().Resource("namespaces").Name(metav1.NamespaceSystem).MaxRetries(0).Do(ctx).Into(&system)
	if err != nil {
		return fmt.Errorf("asking for the UID of namespace %s: %w", metav1.NamespaceSystem, err)
	}
	if err := s.owner.contact(ctx, system.UID); err != nil {
		return err
	}
	s.mu.Lock()
	was := s.isMistaken()
	if s.found != "" && s.found != system.UID { // whether it is accepted or not, what was seen is not its
		s.lost.Store(true)
		s.machine.Lost()
	}
	s.found = system.UID
	mistaken := s.isMistaken()
	if mistaken {
		s.machine.Lost()
	}
	s.mu.Unlock()
	if mistaken {
		if !was {
			s.owner.changed(s)
		}
		return errMistaken
	}
	return nil
}

// isMistaken says whether another cluster answered. The caller has the lock.
func (s *session) isMistaken() bool {
	want := s.owner.identity()
	return s.found != "" && want != "" && s.found != want
}

// health is the state of the session, whoever it is.
func (s *session) health() (state health.State, reason, message string, mistaken types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isMistaken() {
		mistaken = s.found
	}
	state, reason, message = s.machine.State(s.clock.Now())
	if s.unleased != "" && (state == health.Ready || state == health.Suspect) {
		state, reason, message = health.Unfit, ReasonOtherFleet, bounded(s.unleased)
		if s.lease.foreign() == "" {
			reason = ReasonForbidden
		}
	}
	return state, reason, message, mistaken
}
