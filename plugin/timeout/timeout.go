// Package timeout is what --timeout of the commands means.
package timeout

import (
	"context"
	"time"
)

// Context that ends after the timeout; 0 is for ever.
func Context(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, timeout)
}
