package fleet

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"tkestack.io/tapp/test/bench/measure"
	"tkestack.io/tapp/test/bench/program"
)

const (
	pollEvery = 20 * time.Millisecond
	// settled is how long nothing has to wait for all to count as worked on: what a member
	// shows is queued a moment after the member counts as ready.
	settled = 500 * time.Millisecond
	// patience ends what hangs.
	patience = 15 * time.Minute
)

// process is `tapp controller` with the controller of AppSets.
type process struct{ *program.Program }

func launch(ctx context.Context, binary, kubeconfig string) (*process, error) {
	started, err := program.Start(binary, kubeconfig, "--controllers", "appset", "--cluster-namespace", namespace, "--allow-local-clusters")
	if err != nil {
		return nil, err
	}
	p := &process{started}
	return p, p.until(ctx, "the controller is ready", func(ctx context.Context) bool {
		_, err := p.Get(ctx, "/readyz")
		return err == nil
	})
}

func (p *process) usage() (measure.Usage, error) { return measure.UsageOf(p.PID()) }

// synced is when the process had worked on all AppSets, with all members ready.
func (p *process) synced(ctx context.Context, members, appSets int) (at time.Time, err error) {
	err = p.until(ctx, "all is worked on", func(ctx context.Context) bool {
		metrics, err := p.Get(ctx, "/metrics")
		quiet := err == nil && program.Value(metrics, `tapp_fleet_clusters{state="Ready"}`) == float64(members) &&
			program.Value(metrics, `tapp_sync_duration_seconds_count{queue="appset"}`) >= float64(appSets) && program.Value(metrics, `tapp_queue_depth{queue="appset"}`) == 0
		switch {
		case !quiet:
			at = time.Time{}
		case at.IsZero():
			at = time.Now()
		}
		return !at.IsZero() && time.Since(at) >= settled
	})
	return at, err
}

// until something is so, or the process has ended.
func (p *process) until(ctx context.Context, what string, ok func(context.Context) bool) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		select {
		case <-ctx.Done():
		case <-p.Ended():
			stop(p.Wait())
		}
	}()
	err := wait.PollUntilContextTimeout(ctx, pollEvery, patience, true, func(ctx context.Context) (bool, error) { return ok(ctx), nil })
	if err != nil {
		return fmt.Errorf("waiting until %s: %w", what, cmp.Or(context.Cause(ctx), err))
	}
	return nil
}
