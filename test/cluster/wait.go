package cluster

import (
	"context"
	"errors"
	"testing"
	"time"
)

// Conditions are looked at often at first, because most hold soon, and then seldom, to
// leave the machine to what is waited for.
const (
	shortestInterval = 20 * time.Millisecond
	longestInterval  = 100 * time.Millisecond
)

// Poll calls check until it returns nil, and returns its last error when time is up.
func Poll(ctx context.Context, limit time.Duration, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	interval := shortestInterval
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil { // else it only says that time is up
			last = err
		}
		select {
		case <-ctx.Done():
			return last
		case <-time.After(interval):
			interval = min(interval*11/10, longestInterval)
		}
	}
}

// Eventually waits until check returns nil. What check said last is what the test fails
// with.
func Eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	Within(t, Patience, what, check)
}

// Within is Eventually with another limit.
func Within(t *testing.T, limit time.Duration, what string, check func(context.Context) error) {
	t.Helper()
	began := time.Now()
	if err := Poll(t.Context(), limit, check); err != nil {
		t.Fatalf("%s: not within %s; last seen: %v", what, limit, err)
	}
	if took := time.Since(began); took > time.Second {
		t.Logf("%s: after %s", what, took.Round(100*time.Millisecond))
	}
}

// Never fails as soon as check does, and ends well when the time has passed: for what
// must not happen. Such a time is part of what is tested, and short.
func Never(t *testing.T, during time.Duration, what string, check func(context.Context) error) {
	t.Helper()
	holds := errors.New("holds")
	err := Poll(t.Context(), during, func(ctx context.Context) error {
		if err := check(ctx); err != nil && ctx.Err() == nil {
			t.Fatalf("%s: %v", what, err)
		}
		return holds
	})
	if !errors.Is(err, holds) {
		t.Fatalf("%s: %v", what, err)
	}
}

// When is an error with these words when something is missing, and else nil.
func When(missing bool, words string) error {
	if missing {
		return errors.New(words)
	}
	return nil
}
