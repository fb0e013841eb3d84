// Package poll waits for conditions: everything here that takes time is waited for by asking, never by a fixed sleep.
package poll

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Until calls check every interval until it returns nil. When timeout passes first, the error names what was waited for
// and carries the last answer of check. A check that knows that waiting is pointless returns Stop(err).
func Until(ctx context.Context, what string, timeout, interval time.Duration, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		var final stopped
		if errors.As(err, &final) {
			return fmt.Errorf("waiting for %s: %w", what, final.error)
		}
		// An answer that was cut off by our own deadline says less than the one before it.
		if ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("waiting %s for %s: %w", timeout, what, last)
			}
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		case <-time.After(interval):
		}
	}
}

type stopped struct{ error }

// Stop marks an error as final: Until returns at once.
func Stop(err error) error { return stopped{err} }
