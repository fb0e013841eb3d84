package cache

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// podView shows one pod.
type podView struct{ version string }

func (v *podView) Versions() map[types.UID]string { return map[types.UID]string{"u1": v.version} }

func newObserver() *Observer[*podView] {
	return &Observer[*podView]{Stores: newStores(), Clock: clock.RealClock{}, Repairs: prometheus.NewCounter(prometheus.CounterOpts{Name: "repairs"})}
}

// shows returns sources with these versions of the pod; no live version: it is gone.
func shows(looked *int, cached, live string) Sources[*podView] {
	return Sources[*podView]{
		Cached: func(context.Context) (*podView, error) { return &podView{cached}, nil },
		Live: func(context.Context) (*podView, error) {
			*looked++
			if live == "" {
				return nil, nil
			}
			return &podView{live}, nil
		},
	}
}

// outOfPatience is a guard whose stores have lacked a write for long enough.
func outOfPatience() *Guard {
	var g Guard
	g.Wrote("pods", "120")
	g.since, g.patience = time.Now().Add(-patience), patience
	return &g
}

// TestOneLiveViewAtATime: while one object is looked at live, another one whose stores are
// behind waits for its turn, and its patience is not used up by that.
func TestOneLiveViewAtATime(t *testing.T) {
	o, g, looked := newObserver(), outOfPatience(), 0
	s := shows(&looked, "90", "120")
	o.live.Lock()
	if v, wait, err := o.Observe(t.Context(), g, s); v != nil || wait != lookAgain || err != nil {
		t.Fatalf("another one is looked at: got %v, %v, %v; want to wait", v, wait, err)
	}
	if looked > 0 {
		t.Fatal("it was looked at live")
	}
	o.live.Unlock()

	v, _, err := o.Observe(t.Context(), g, s)
	if err != nil || v == nil || v.version != "120" || testutil.ToFloat64(o.Repairs) != 1 {
		t.Fatalf("nobody is looked at: got %v, %v; want a live view", v, err)
	}
	if v, wait, err := o.Observe(t.Context(), g, s); v != nil || wait <= patience || wait > 2*patience || err != nil {
		t.Errorf("after a live view: got %v, %v, %v; want to wait longer than the first time", v, wait, err)
	}
	if !o.live.TryLock() {
		t.Error("the live view is made, and its turn is not over")
	}
}

// TestLiveViewSettlesTheGuard: marks of writes that left no trace are dropped once a live
// view shows the same as the stores, and an object that is gone is looked at again.
func TestLiveViewSettlesTheGuard(t *testing.T) {
	for name, c := range map[string]struct {
		live  string
		waits bool // the next time
		wait  time.Duration
	}{
		"the same":  {"90", false, 0},
		"newer":     {"120", true, 0},
		"it's gone": {"", true, goneAgain},
	} {
		t.Run(name, func(t *testing.T) {
			o, g, looked := newObserver(), outOfPatience(), 0
			s := shows(&looked, "90", c.live)
			if v, wait, err := o.Observe(t.Context(), g, s); (v == nil) != (c.live == "") || wait != c.wait || err != nil {
				t.Errorf("got %v, %v, %v", v, wait, err)
			}
			if v, wait, err := o.Observe(t.Context(), g, s); (v == nil) != c.waits || (wait > 0) != c.waits || err != nil || looked != 1 {
				t.Errorf("the next time: got %v, %v, %v; looked live %d times", v, wait, err, looked)
			}
		})
	}
}
