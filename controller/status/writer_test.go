package status

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
)

// replicas is a status.
type replicas struct {
	Ready int `json:"ready"`
}

// target is an object whose status is written.
type target struct {
	w        *Writer
	throttle Throttle
	stored   replicas
	writes   []string
	err      error
}

func newTarget(hold time.Duration) *target {
	return &target{w: NewWriter(clock.RealClock{}, 600*time.Millisecond, hold)}
}

func (o *target) put(t *testing.T, ready int, passing bool) (again time.Duration, writes int) {
	t.Helper()
	before := len(o.writes)
	again, err := o.w.Put(t.Context(), &o.throttle, Status{UID: "u", Stored: &o.stored, Next: &replicas{ready}, Deferrable: passing,
		Patch: func(_ context.Context, data []byte) error {
			o.writes = append(o.writes, string(data))
			return o.err
		}})
	if err != nil {
		t.Fatal(err)
	}
	if writes = len(o.writes) - before; writes > 0 {
		o.stored.Ready = ready
	}
	return again, writes
}

// TestPassingStatusWaits: work that ends within a second is told once, and work that
// does not, each second; a status that does not pass does not wait for one that does.
func TestPassingStatusWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hold = time.Second
		o := newTarget(hold)
		expect := func(ready int, passing bool, wait time.Duration, want int) {
			t.Helper()
			if rest, n := o.put(t, ready, passing); rest != wait || n != want {
				t.Errorf("%d ready: %d writes, again after %s, want %d writes, again after %s", ready, n, rest, want, wait)
			}
		}
		expect(1, true, hold, 0)
		time.Sleep(hold / 2)
		expect(2, true, hold/2, 0)
		expect(3, false, 0, 1)
		time.Sleep(time.Minute)
		expect(4, true, hold, 0) // from the difference on, not from the last write
		time.Sleep(hold)
		expect(5, true, 0, 1)
		expect(6, true, hold, 0)
		expect(5, true, 0, 0) // as it was
		time.Sleep(hold)
		expect(6, true, hold, 0)

		expect(7, false, 0, 1)
		o.w.turns.wrote(time.Hour)
		for range turnBurst { // other objects'
			o.w.turns.next(time.Now(), hold)
		}
		const turn = turnInterval
		expect(8, true, turn, 0)
		time.Sleep(2 * time.Second)
		expect(9, true, turn-2*time.Second, 0) // it has its turn
		time.Sleep(turn - 2*time.Second)
		expect(9, true, 0, 1)
	})
}

// TestHold: a status that only tells of a rollout is held back for as long as the kind
// wants; any other is written at once, but for a little distance from the last one.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hold = 10 * time.Second
		o := newTarget(hold)
		began := time.Now()
		for n, s := range []struct {
			at      time.Duration
			passing bool
			want    time.Duration
		}{
			{0, true, hold},
			{4 * time.Second, true, 6 * time.Second},
			{5 * time.Second, false, 0}, // it is ready
			{6 * time.Second, true, hold},
			{16 * time.Second, true, 0},
			{16200 * time.Millisecond, false, 400 * time.Millisecond},
			{16200 * time.Millisecond, true, hold},
		} {
			time.Sleep(s.at - time.Since(began))
			if got, _ := o.put(t, n+1, s.passing); got != s.want {
				t.Errorf("at %v it waits %v, want %v", s.at, got, s.want)
			}
		}
	})
}

// TestLongWritesAreFewer: a write that takes long puts the next one off.
func TestLongWritesAreFewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTarget(time.Second)
		var throttle Throttle
		slow := func(ready int) time.Duration {
			again, err := o.w.Put(t.Context(), &throttle, Status{Stored: &replicas{}, Next: &replicas{ready}, Patch: func(context.Context, []byte) error {
				time.Sleep(2 * time.Second)
				return nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			return again
		}
		slow(1)
		if again := slow(2); again != 8*time.Second {
			t.Errorf("after a write of 2 s the next one waits for %s, want the rest of 10 s", again)
		}
	})
}

// TestAfterAnOutage: a write that hung for a minute puts the next one off by no more than
// any other long one.
func TestAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTarget(0)
		_, err := o.w.Put(t.Context(), &o.throttle, Status{UID: "u", Stored: &o.stored, Next: &replicas{1}, Patch: func(context.Context, []byte) error {
			time.Sleep(time.Minute)
			return errors.New("no answer")
		}})
		if err == nil {
			t.Error("there is no error")
		}
		if again, n := o.put(t, 2, false); n != 1 {
			t.Errorf("the next status has to wait for %v", again)
		}
	})
}

// TestErrors: an object that is gone has no status; after a conflict the status is tried
// again, and other errors are told.
func TestErrors(t *testing.T) {
	apps := schema.GroupResource{Resource: "apps"}
	for name, c := range map[string]struct {
		err, want error
		again     time.Duration
	}{
		"gone":     {apierrors.NewNotFound(apps, "a"), nil, 0},
		"conflict": {apierrors.NewConflict(apps, "a", nil), nil, conflictAgain},
		"refused":  {errRefused, errRefused, 0},
	} {
		o := newTarget(time.Second)
		again, err := o.w.Put(t.Context(), &o.throttle, Status{Stored: &replicas{}, Next: &replicas{1}, Patch: func(context.Context, []byte) error { return c.err }})
		if again != c.again || !errors.Is(err, c.want) {
			t.Errorf("%s: again after %s, error %v; want %s and %v", name, again, err, c.again, c.want)
		}
	}
}

var errRefused = errors.New("refused")

// TestFlush: the last status is written at the end, once, and not when time is up.
func TestFlush(t *testing.T) {
	o := newTarget(time.Second)
	for ready := range 3 {
		o.put(t, ready+1, false)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	o.w.Flush(ended, &o.throttle)
	if len(o.writes) != 1 {
		t.Errorf("written %q after the end, want the first one only", o.writes)
	}
	o.w.Flush(t.Context(), &o.throttle)
	if len(o.writes) != 2 || o.writes[1] != `{"metadata":{"uid":"u"},"status":{"ready":3}}` {
		t.Errorf("written %q, want the first and the last", o.writes)
	}
}
