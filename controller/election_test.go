package controller

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

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

// TestLeaseIsGivenUpAfterTheWork: whatever makes client-go give up the lease.
func TestLeaseIsGivenUpAfterTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		term := newTerm(t.Context(), time.Hour, func(_, underWay context.Context) {
			<-underWay.Done()
			time.Sleep(3 * time.Second)
			order = append(order, "work ended")
		})
		go term.begin()
		synctest.Wait()
		lock := &patientLock{term: term, Interface: recordingLock{do: func(holder string) { order = append(order, "lease of "+holder) }}}
		if err := lock.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "me"}); err != nil {
			t.Fatal(err)
		}
		if err := lock.Update(t.Context(), resourcelock.LeaderElectionRecord{}); err != nil {
			t.Fatal(err)
		}
		if len(order) != 3 || order[0] != "lease of me" || order[1] != "work ended" || order[2] != "lease of " {
			t.Errorf("got %q", order)
		}
	})
}

type recordingLock struct {
	resourcelock.Interface
	do func(holder string)
}

func (l recordingLock) Update(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	l.do(r.HolderIdentity)
	return nil
}
