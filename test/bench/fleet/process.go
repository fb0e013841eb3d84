package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"tkestack.io/tapp/test/bench/measure"
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
type process struct {
	cmd     *exec.Cmd
	log     *bytes.Buffer
	address string // of its metrics
	started time.Time
}

func launch(ctx context.Context, binary, kubeconfig string) (*process, error) {
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("looking for a port: %w", err)
	}
	p := &process{log: &bytes.Buffer{}, address: l.Addr().String(), started: time.Now()}
	if err := l.Close(); err != nil {
		return nil, fmt.Errorf("looking for a port: %w", err)
	}
	p.cmd = exec.Command(binary, "controller", "--kubeconfig", kubeconfig, "--controllers", "appset", "--leader-elect=false",
		"--cluster-namespace", namespace, "--allow-local-clusters", "--metrics-address", p.address)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the controller: %w", err)
	}
	return p, until(ctx, "the controller is ready", func(ctx context.Context) bool {
		_, err := p.get(ctx, "/readyz")
		return err == nil
	})
}

// stop ends the process in order.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stopping the controller: %w", err)
	}
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("the controller failed: %w\n%s", err, p.log.String())
	}
	return nil
}

func (p *process) usage() (measure.Usage, error) { return measure.UsageOf(p.cmd.Process.Pid) }

func (p *process) get(ctx context.Context, path string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.address+path, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", path, response.Status)
	}
	return string(body), nil
}

// synced is when the process had worked on all AppSets, with all members ready.
func (p *process) synced(ctx context.Context, members, appSets int) (at time.Time, err error) {
	err = until(ctx, "all is worked on", func(ctx context.Context) bool {
		metrics, err := p.get(ctx, "/metrics")
		quiet := err == nil && value(metrics, `tapp_fleet_clusters{state="Ready"}`) == float64(members) &&
			value(metrics, `tapp_sync_duration_seconds_count{queue="appset"}`) >= float64(appSets) && value(metrics, `tapp_queue_depth{queue="appset"}`) == 0
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

func until(ctx context.Context, what string, ok func(context.Context) bool) error {
	err := wait.PollUntilContextTimeout(ctx, pollEvery, patience, true, func(ctx context.Context) (bool, error) { return ok(ctx), nil })
	if err != nil {
		return fmt.Errorf("waiting until %s: %w", what, err)
	}
	return nil
}

// value of a metric; -1 if there is none.
func value(metrics, name string) float64 {
	for line := range strings.Lines(metrics) {
		if text, ok := strings.CutPrefix(line, name+" "); ok {
			if v, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err == nil {
				return v
			}
		}
	}
	return -1
}
