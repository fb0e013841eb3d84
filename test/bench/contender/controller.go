package contender

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"tkestack.io/tapp/test/bench/program"
)

// controller is a process of `tapp controller`.
type controller struct{ *program.Program }

// startController returns as soon as the process is there.
func (b *Bench) startController() (*controller, error) {
	started, err := program.Start(b.Binary, b.Kubeconfig)
	if err != nil {
		return nil, err
	}
	return &controller{started}, nil
}

// until polls often: what it waits for is measured.
func (c *controller) until(ctx context.Context, what string, ok func(context.Context) bool) error {
	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		return ok(ctx), nil
	})
	if err != nil {
		return fmt.Errorf("waiting until the controller %s: %w", what, err)
	}
	return nil
}

// ready returns when the controller's caches are filled.
func (c *controller) ready(ctx context.Context) error {
	return c.until(ctx, "is ready", func(ctx context.Context) bool {
		_, err := c.Get(ctx, "/readyz")
		return err == nil
	})
}

// synced returns when it has worked on n TApps and nothing waits.
func (c *controller) synced(ctx context.Context, n int) error {
	return c.until(ctx, "has worked on all", func(ctx context.Context) bool {
		metrics, err := c.Get(ctx, "/metrics")
		return err == nil && program.Value(metrics, `tapp_sync_duration_seconds_count{queue="tapp"}`) >= float64(n) &&
			program.Value(metrics, `tapp_queue_depth{queue="tapp"}`) == 0
	})
}

// Restarted is how long a new process took from its start, to fill its caches and
// to work on everything once.
type Restarted struct{ Ready, Synced time.Duration }

func (c *tappUser) restart(ctx context.Context) (Restarted, error) {
	var r Restarted
	c.requested = 0
	if err := c.process.Stop(); err != nil {
		return r, err
	}
	next, err := c.startController()
	if err != nil {
		return r, err
	}
	c.process = next
	if err := next.ready(ctx); err != nil {
		return r, fmt.Errorf("%w\n%s", err, next.Log())
	}
	r.Ready = time.Since(next.Started)
	err = next.synced(ctx, c.size.Objects)
	r.Synced = time.Since(next.Started)
	return r, err
}
