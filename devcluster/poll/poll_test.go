package poll

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestUntil(t *testing.T) {
	problem := errors.New("not yet")
	calls := 0
	check := func(err error, after int) func(context.Context) error {
		calls = 0
		return func(context.Context) error {
			calls++
			if calls > after {
				return nil
			}
			return err
		}
	}
	if err := Until(t.Context(), "x", time.Minute, time.Millisecond, check(problem, 3)); err != nil || calls != 4 {
		t.Errorf("%v after %d calls", err, calls)
	}
	if err := Until(t.Context(), "x", 20*time.Millisecond, time.Millisecond, check(problem, 1e9)); !errors.Is(err, problem) {
		t.Errorf("a timeout must carry the last answer, got %v", err)
	}
	if err := Until(t.Context(), "x", time.Minute, time.Millisecond, check(Stop(problem), 1e9)); !errors.Is(err, problem) || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Until(ctx, "x", time.Minute, time.Millisecond, check(problem, 1e9)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
