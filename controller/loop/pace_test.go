package loop

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestStorm: however many events there are, a key spends at most a third of the
// time on looking at them.
func TestStorm(t *testing.T) {
	for name, c := range map[string]struct {
		looks, writes time.Duration
		min, max      int // syncs in 10 s
	}{
		"short syncs go every 10 ms":                           {0, 0, 300, 1100},
		"syncs of 3 ms, every 30":                              {3 * time.Millisecond, 0, 330, 355},
		"syncs of 10 ms, every 50":                             {10 * time.Millisecond, 0, 200, 215},
		"syncs of 50 ms, every 150 ms":                         {50 * time.Millisecond, 0, 55, 70},
		"syncs of 400 ms, at most every 500":                   {400 * time.Millisecond, 0, 18, 26},
		"syncs of 2 s, one after the other":                    {2 * time.Second, 0, 5, 7},
		"writing for 90 ms, and then another one":              {0, 90 * time.Millisecond, 90, 112},
		"looking for 10 ms and writing for 50, every 60":       {10 * time.Millisecond, 50 * time.Millisecond, 140, 170},
		"looking for 50 ms and writing for 10, again each 150": {50 * time.Millisecond, 10 * time.Millisecond, 55, 70},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var syncs int
				l := &Loop{Sync: func(ctx context.Context, _ Key) (Result, error) {
					syncs++
					time.Sleep(c.looks)
					time.Sleep(c.writes)
					return Result{Writing: c.writes}, nil
				}}
				stop := start(t, l)
				for range 10_000 {
					l.Enqueue(key("a"))
					time.Sleep(time.Millisecond)
				}
				stop()
				if syncs < c.min || syncs > c.max {
					t.Errorf("%d syncs, want %d to %d", syncs, c.min, c.max)
				}
			})
		})
	}
}

// TestEnqueuedOnce: events of a key that is enqueued already cost nothing, until its sync begins.
func TestEnqueuedOnce(t *testing.T) {
	p, now := pace{keys: map[Key]*debounce{}}, time.Now()
	for n, want := range []bool{true, false, false} {
		if _, got := p.schedule(key("a"), now, true); got != want {
			t.Errorf("event %d is enqueued: %t, want %t", n, got, want)
		}
	}
	if _, got := p.schedule(key("b"), now, true); !got {
		t.Error("another key is not enqueued")
	}
	p.began(key("a"), now)
	if _, got := p.schedule(key("a"), now, true); !got {
		t.Error("an event in a sync is not enqueued")
	}
}

func TestFirstEventGoesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var began time.Time
		var waited []time.Duration
		l := &Loop{Sync: func(context.Context, Key) (Result, error) {
			waited = append(waited, time.Since(began))
			time.Sleep(10 * time.Second)
			synctest.Wait()
			return Result{}, nil
		}}
		stop := start(t, l)
		for range 3 {
			began = time.Now()
			l.Enqueue(key("a"))
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		stop()
		for _, w := range waited {
			if w > 0 {
				t.Errorf("waited %v, want nothing", waited)
			}
		}
	})
}

// A rollout of one instance at a time: each write is echoed by the watch, the kubelet
// answers soon after, and a container starts. Nothing of it waits for longer than the sync
// of the echo, however many instances there are.
func TestFewEventsWaitForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var asked time.Time
		var worst time.Duration
		l := &Loop{Sync: func(context.Context, Key) (Result, error) {
			const look, write = time.Millisecond / 2, 5 * time.Millisecond
			mu.Lock()
			isEcho := asked.IsZero()
			if !isEcho {
				worst = max(worst, time.Since(asked))
				asked = time.Time{}
			}
			mu.Unlock()
			if isEcho {
				time.Sleep(look)
				return Result{}, nil
			}
			time.Sleep(look + write)
			return Result{Writing: write}, nil
		}}
		stop := start(t, l)
		for range 100 {
			for _, pause := range []time.Duration{60, 9, 9} { // container back, ready, not ready
				time.Sleep(pause * time.Millisecond)
				mu.Lock()
				asked = time.Now()
				mu.Unlock()
				l.Enqueue(key("a"))
				time.Sleep(5 * time.Millisecond)
				l.Enqueue(key("a")) // the echo
			}
		}
		stop()
		if worst > time.Millisecond {
			t.Errorf("an event waited for %v", worst)
		}
	})
}

// While other keys wait for a worker, events of a key are batched.
func TestBacklogBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		syncs := map[string]int{}
		l := &Loop{Sync: func(_ context.Context, k Key) (Result, error) {
			if k.Name == "slow" {
				time.Sleep(50 * time.Millisecond)
			}
			syncs[k.Name]++
			return Result{}, nil
		}}
		stop := start(t, l)
		l.Enqueue(key("slow"))
		synctest.Wait()
		l.Enqueue(key("waits"))
		synctest.Wait()
		for range 45 { // due when batch is over, and until its turn comes
			l.Enqueue(key("a"))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second)
		stop()
		if syncs["a"] != 1 || syncs["waits"] != 1 {
			t.Errorf("syncs: %v, want one of each", syncs)
		}
		p := pace{keys: map[Key]*debounce{}}
		now := time.Now()
		if after, ok := p.schedule(key("a"), now, true); !ok || after != batch {
			t.Errorf("with a backlog it waits for %v, want %v", after, batch)
		}
		if after, ok := p.schedule(key("b"), now, false); !ok || after != 0 {
			t.Errorf("without one it waits for %v, want nothing", after)
		}
	})
}

func TestPaceForgetsQuietKeys(t *testing.T) {
	p := pace{keys: map[Key]*debounce{}}
	now := time.Now()
	for i := range 10 * sweepEvery {
		k := key(fmt.Sprint(i))
		now = now.Add(10 * time.Millisecond)
		p.schedule(k, now, false)
		p.began(k, now)
		p.ended(k, time.Millisecond, now)
	}
	if len(p.keys) > sweepEvery+100 {
		t.Errorf("%d keys are remembered, want those of the last moments", len(p.keys))
	}
}
