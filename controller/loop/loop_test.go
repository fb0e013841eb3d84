package loop

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func key(name string) Key { return Key{Namespace: "ns", Name: name} }

// start runs the loop in a bubble of fake time, and returns what ends it.
func start(t *testing.T, l *Loop) (stop func()) {
	t.Helper()
	if l.Seed == nil {
		l.Seed = func() []Key { return nil }
	}
	l.Name, l.Workers = "test", max(l.Workers, 1)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { l.Run(ctx, t.Context()); close(done) }()
	synctest.Wait()
	return func() { cancel(); <-done }
}

func TestSeedAndEnqueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		synced := map[Key]int{}
		l := &Loop{
			Seed: func() []Key { return []Key{key("a"), key("b")} },
			Sync: func(_ context.Context, k Key) (Result, error) { synced[k]++; return Result{}, nil },
		}
		l.Enqueue(key("dropped")) // not running
		stop := start(t, l)
		l.Enqueue(key("c"))
		time.Sleep(time.Second)
		stop()
		if want := "map[ns/a:1 ns/b:1 ns/c:1]"; fmt.Sprint(synced) != want {
			t.Errorf("synced %v, want %s", synced, want)
		}
	})
}

func TestErrorsBackOff(t *testing.T) {
	for name, c := range map[string]struct {
		transient bool
		window    time.Duration
		min, max  int
	}{
		"own fault, capped at 30 s": {false, 10 * time.Minute, 20, 35},
		"API server away, at 2 s":   {true, 10 * time.Minute, 295, 315},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var syncs int
				l := &Loop{
					Sync:      func(context.Context, Key) (Result, error) { syncs++; return Result{}, errors.New("no") },
					Transient: func(error) bool { return c.transient },
				}
				stop := start(t, l)
				l.Enqueue(key("a"))
				time.Sleep(c.window)
				synctest.Wait()
				stop()
				if syncs < c.min || syncs > c.max {
					t.Errorf("%d syncs in %v, want %d to %d", syncs, c.window, c.min, c.max)
				}
			})
		})
	}
}

func TestSuccessEndsBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var syncs int
		var last time.Time
		l := &Loop{Sync: func(context.Context, Key) (Result, error) {
			syncs++
			last = time.Now()
			if syncs < 8 || syncs == 9 {
				return Result{}, errors.New("no")
			}
			return Result{}, nil
		}}
		stop := start(t, l)
		l.Enqueue(key("a"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if syncs != 8 {
			t.Fatalf("%d syncs, want 8", syncs)
		}
		l.Enqueue(key("a"))
		began := time.Now()
		time.Sleep(time.Minute)
		stop()
		if took := last.Sub(began); syncs != 10 || took > 100*time.Millisecond {
			t.Errorf("%d syncs, the last after %v; want 10, the last soon after the one that failed", syncs, took)
		}
	})
}

func TestAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		began := time.Now()
		l := &Loop{Sync: func(context.Context, Key) (Result, error) {
			at = append(at, time.Since(began).Round(time.Second))
			if len(at) == 1 {
				return Result{After: 15 * time.Second}, nil
			}
			return Result{}, nil
		}}
		stop := start(t, l)
		l.Enqueue(key("a"))
		time.Sleep(time.Hour)
		stop()
		if fmt.Sprint(at) != "[0s 15s]" {
			t.Errorf("synced at %v, want 0s and 15s", at)
		}
	})
}

// A key that failed is called again when it wanted to be, if that is before the end
// of its backoff.
func TestErrorsAreDueInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var syncs int
		l := &Loop{Sync: func(context.Context, Key) (Result, error) {
			syncs++
			return Result{After: 2 * time.Second}, errors.New("no")
		}}
		stop := start(t, l)
		l.Enqueue(key("a"))
		time.Sleep(10 * time.Minute)
		stop()
		if syncs < 295 || syncs > 315 {
			t.Errorf("%d syncs in 10 minutes, want one every two seconds", syncs)
		}
	})
}

// Rollouts of three steps each, all of which begin at once, are worked off one after
// the other, and not step by step; but what is under way all the time holds up nothing.
func TestUnderWayGoesFirst(t *testing.T) {
	for name, c := range map[string]struct {
		steps map[string]int // of a, b and c, which come due in this order
		want  string
	}{
		"one after the other": {map[string]int{"a": 3, "b": 3, "c": 3}, "a a a b b b c c c"},
		"a share for others":  {map[string]int{"a": 20, "b": 1, "c": 1}, "a a a a a b a a a a c a a a a a a a a a a a"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var order []string
				left := maps.Clone(c.steps)
				var l *Loop
				l = &Loop{
					Sync: func(ctx context.Context, k Key) (Result, error) {
						order = append(order, k.Name)
						left[k.Name]--
						progress := AtRest
						if left[k.Name] > 0 {
							progress = UnderWay
							l.Enqueue(k) // an event tells of what was written
						}
						time.Sleep(time.Second)
						return Result{Progress: progress}, nil
					},
				}
				stop := start(t, l)
				for _, name := range []string{"a", "b", "c"} {
					l.Enqueue(key(name))
					time.Sleep(2 * batch) // or the order would be any
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				stop()
				if got := strings.Join(order, " "); got != c.want {
					t.Errorf("worked on %s, want %s", got, c.want)
				}
				if len(l.order.underWay) > 0 {
					t.Errorf("under way at the end: %v", l.order.underWay)
				}
			})
		})
	}
}

// A sync that cannot tell, since it cannot look yet, changes nothing.
func TestUnderWayUntilTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []bool
		var l *Loop
		l = &Loop{Sync: func(ctx context.Context, k Key) (Result, error) {
			seen = append(seen, l.order.isUnderWay(k))
			progress := map[int]Progress{1: UnderWay, 3: AtRest}
			return Result{After: time.Second, Progress: progress[len(seen)]}, nil
		}}
		stop := start(t, l)
		l.Enqueue(key("a"))
		time.Sleep(3500 * time.Millisecond)
		synctest.Wait()
		stop()
		if want := "[false true true false]"; fmt.Sprint(seen) != want {
			t.Errorf("under way: %v, want %s", seen, want)
		}
	})
}

func TestPanicHarmsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		var good atomic.Int32
		l := &Loop{Metrics: NewMetrics(registry), Sync: func(_ context.Context, k Key) (Result, error) {
			if k.Name == "bad" {
				var m map[string]int
				m["a"] = 1 //nolint:staticcheck // it panics, which the test is about
			}
			good.Add(1)
			return Result{}, nil
		}}
		stop := start(t, l)
		l.Enqueue(key("bad"))
		l.Enqueue(key("good"))
		time.Sleep(time.Minute)
		stop()
		if good.Load() != 1 {
			t.Errorf("the other key was synced %d times, want once", good.Load())
		}
		if n := testutil.ToFloat64(l.Metrics.panics.WithLabelValues("test")); n < 5 || n > 20 {
			t.Errorf("%v panics counted in a minute, want some: the key is tried again with backoff", n)
		}
	})
}

func TestPanicHasAStack(t *testing.T) {
	l := &Loop{Sync: func(context.Context, Key) (Result, error) { panic("oh") }}
	_, err := l.call(t.Context(), key("a"))
	if err == nil || !strings.Contains(err.Error(), "panic: oh") || !strings.Contains(err.Error(), "loop_test.go") {
		t.Errorf("got error %v, want one with the stack", err)
	}
}

func TestStopLetsSyncsFinishAndTakesNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var finished, begun int
		l := &Loop{Sync: func(ctx context.Context, _ Key) (Result, error) {
			begun++
			select {
			case <-time.After(10 * time.Second):
				finished++
			case <-ctx.Done():
			}
			return Result{}, nil
		}}
		stop := start(t, l)
		l.Enqueue(key("a"))
		time.Sleep(time.Second)
		synctest.Wait()
		l.Enqueue(key("b")) // waits for the one worker
		time.Sleep(time.Second)
		stop()
		if begun != 1 || finished != 1 {
			t.Errorf("%d syncs began and %d finished, want 1 and 1", begun, finished)
		}
	})
}

func TestRunsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var syncs int
		l := &Loop{
			Metrics: NewMetrics(prometheus.NewRegistry()),
			Seed:    func() []Key { return []Key{key("a")} },
			Sync:    func(context.Context, Key) (Result, error) { syncs++; return Result{}, nil },
		}
		for range 3 {
			stop := start(t, l)
			time.Sleep(time.Second)
			stop()
		}
		if syncs != 3 {
			t.Errorf("%d syncs in 3 runs, want 3", syncs)
		}
	})
}

func TestSoonest(t *testing.T) {
	for _, c := range []struct {
		of   []time.Duration
		want time.Duration
	}{
		{nil, 0}, {[]time.Duration{0}, 0}, {[]time.Duration{0, 0}, 0}, {[]time.Duration{3, 0}, 3}, {[]time.Duration{0, 3}, 3},
		{[]time.Duration{3, 2, 0, 4}, 2}, {[]time.Duration{-1, 5}, 5},
	} {
		if got := Soonest(c.of...); got != c.want {
			t.Errorf("soonest of %v is %v, want %v", c.of, got, c.want)
		}
	}
}
