package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/wait"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plugin/timeout"
)

const (
	// observedTimeout is how long to wait, unless said, until the controller has seen a spec.
	observedTimeout = 30 * time.Second
	// observedInterval is after how long to look again.
	observedInterval = 500 * time.Millisecond
)

// observing are the flags of commands that go by what the status says of the present spec.
type observing struct{ timeout time.Duration }

func newObserving(c *cobra.Command) *observing {
	o := &observing{}
	c.Flags().DurationVar(&o.timeout, "timeout", observedTimeout, "How long to wait until the controller has seen the present spec; 0 is for ever")
	return o
}

// get an AppSet whose status is about its present spec. Right after a change that takes a moment.
// It asks again and again, which needs no right but the one to get the AppSet.
func (o *observing) get(ctx context.Context, hub *workspace, name string) (*v1beta1.AppSet, error) {
	a, err := hub.get(ctx, name)
	if err != nil || !isUnobserved(a) {
		return a, err
	}
	_, _ = fmt.Fprintf(hub.Streams.ErrOut, "Waiting for the controller to see generation %d of %s.\n", a.Generation, a.Name)
	ctx, cancel := timeout.Context(ctx, o.timeout)
	defer cancel()
	err = wait.PollUntilContextCancel(ctx, observedInterval, false, func(ctx context.Context) (bool, error) {
		now, err := hub.get(ctx, name)
		if err != nil {
			return false, err
		}
		a = now
		return !isUnobserved(a), nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("the time is up after %s, and the controller has not seen generation %d of %s: look whether it runs on the hub (kubectl get pods -n %s), or wait longer with --timeout",
			o.timeout, a.Generation, a.Name, hub.clusterNamespace)
	}
	return a, err
}
