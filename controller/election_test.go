package controller

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// TestTermEnds: work that ends in order gets its grace, work that hangs is broken
// off, and in either case the term is over only when it has ended.
func TestTermEnds(t *testing.T) {
	for name, c := range map[string]struct {
		needs    time.Duration // after it was asked to end
		end      func(*term)
		took     time.Duration
		finished bool
	}{
		"in order":               {5 * time.Second, (*term).end, 5 * time.Second, true},
		"beyond its grace":       {time.Hour, (*term).end, 20 * time.Second, false},
		"when the lease is lost": {5 * time.Second, (*term).breakOff, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				finished := false
				term := newTerm(t.Context(), 20*time.Second, func(ctx, underWay context.Context) {
					<-ctx.Done()
					select {
					case <-time.After(c.needs):
						finished = true
					case <-underWay.Done():
					}
				})
				go term.begin()
				synctest.Wait()
				began := time.Now()
				c.end(term)
				if took := time.Since(began); took != c.took || finished != c.finished {
					t.Errorf("ended after %v, finished: %v; want %v, %v", took, finished, c.took, c.finished)
				}
			})
		})
	}
}

func TestTermThatNeverBegan(t *testing.T) {
	worked := false
	term := newTerm(t.Context(), time.Hour, func(context.Context, context.Context) { worked = true })
	term.end()
	term.begin() // the election was won too late
	if worked {
		t.Error("it worked after its end")
	}
}

// TestGiveUp: an API server that fails for a moment does not keep the lease from
// the next one; one that stays away does not keep this process from ending.
func TestGiveUp(t *testing.T) {
	const me, other = "me", "other"
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, "lease", nil)
	for name, c := range map[string]struct {
		holder   string
		failures []error // of the first requests
		always   error   // of all that follow
		took     time.Duration
		holds    string
		err      string
	}{
		"at once":            {holder: me},
		"a renewal raced":    {holder: me, failures: []error{nil, conflict}, took: giveUpRetry},
		"away for a moment":  {holder: me, failures: []error{errors.New("refused"), errors.New("refused")}, took: 2 * giveUpRetry},
		"another one has it": {holder: other, holds: other},
		"gone":               {holder: me, always: apierrors.NewNotFound(schema.GroupResource{}, "lease"), holds: me},
		"away until the end": {holder: me, always: errors.New("refused"), took: giveUpTimeout, holds: me, err: "giving up the lease: refused"},
		"nobody has it yet":  {holder: ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lock := &fakeLock{holder: c.holder, failures: c.failures, always: c.always}
				began := time.Now()
				err := giveUp(t.Context(), lock)
				if took := time.Since(began); took != c.took || lock.holder != c.holds {
					t.Errorf("after %v the lease is held by %q; want %v, %q", took, lock.holder, c.took, c.holds)
				}
				if got := fmt.Sprint(err); got != c.err && (err != nil || c.err != "") {
					t.Errorf("got error %q, want %q", got, c.err)
				}
			})
		})
	}
}

type fakeLock struct {
	resourcelock.Interface
	holder   string
	failures []error
	always   error
}

func (l *fakeLock) fail() error {
	if len(l.failures) == 0 {
		return l.always
	}
	err := l.failures[0]
	l.failures = l.failures[1:]
	return err
}

func (l *fakeLock) Identity() string { return "me" }

func (l *fakeLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &resourcelock.LeaderElectionRecord{HolderIdentity: l.holder}, nil, l.fail()
}

func (l *fakeLock) Update(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	err := l.fail()
	if err == nil {
		l.holder = r.HolderIdentity
	}
	return err
}
