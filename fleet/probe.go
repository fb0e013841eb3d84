package fleet

import (
	"context"
	"errors"
	"hash/fnv"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"tkestack.io/tapp/fleet/health"
	"tkestack.io/tapp/process/parallel"
)

const (
	probeEvery   = 4 * time.Second
	probeTimeout = 3 * time.Second
	// probeSpread keeps the probes of many members apart: each has an interval of its own.
	// None is longer than probeEvery, so that three failures fit into the time to Offline.
	probeSpread = 500 * time.Millisecond
)

// intervalOf the probes of a member.
func intervalOf(name string) time.Duration {
	h := fnv.New64a()
	_, _ = io.WriteString(h, name)
	return probeEvery - time.Duration(h.Sum64()%uint64(probeSpread))
}

// whileProbing lets the state change while a probe runs: that of a silent member takes until
// its timeout.
func (s *session) whileProbing(ctx context.Context) {
	var probe parallel.Group
	done := make(chan struct{})
	probe.Do(func() {
		defer close(done)
		s.probe(ctx)
	})
	pass(ctx, s, done)
	probe.Wait()
}

// rest until the next probe, which is due then. Probes that take long do not make for fewer of
// them.
func (s *session) rest(ctx context.Context, due time.Time) {
	pass(ctx, s, s.clock.After(max(due.Sub(s.clock.Now()), s.every/5)))
}

// pass lets the state change when time alone changes it, until something is received.
func pass[T any](ctx context.Context, s *session, until <-chan T) {
	for {
		s.mu.Lock()
		next := s.machine.Next(s.clock.Now())
		s.mu.Unlock()
		var tick <-chan time.Time
		if !next.IsZero() {
			tick = s.clock.After(max(next.Sub(s.clock.Now()), time.Millisecond))
		}
		select {
		case <-ctx.Done():
			return
		case <-until:
			return
		case <-tick:
			s.mu.Lock()
			s.machine.Tick(s.clock.Now())
			s.mu.Unlock()
			s.owner.changed(s)
		}
	}
}

func (s *session) probe(ctx context.Context) {
	began := s.clock.Now()
	limited, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	core := s.connection.requests.core.RESTClient()
	err := core.Get().AbsPath("/readyz").MaxRetries(0).Do(limited).Error()
	if errors.Is(err, errMistaken) {
		err = nil // somebody is well there
	}
	result := judge(err)
	if apierrors.IsNotFound(err) {
		result.Reason, result.Message = ReasonNoServer, "what answers there is no API server"
	}
	if result.Outcome == health.Silent && ctx.Err() == nil {
		if core.Get().AbsPath("/livez").MaxRetries(0).Do(limited).Error() == nil {
			result.Message = "its API server is alive, but not ready: " + result.Message
		}
		// A connection that leads nowhere is not used again.
		if s.silent() {
			s.connection.requests.gate.close()
		}
		s.connection.requests.gate.closeIdle()
	}
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine.Probed(began, s.clock.Now(), result)
}
