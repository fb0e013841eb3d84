package contender

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
)

// controller is a process of `tapp controller`.
type controller struct {
	cmd     *exec.Cmd
	log     *bytes.Buffer
	address string // of its metrics and health
	started time.Time
}

// startController returns as soon as the process is there.
func (b *Bench) startController() (*controller, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	c := &controller{log: &bytes.Buffer{}, address: address}
	c.cmd = exec.Command(b.Binary, "controller", "--kubeconfig", b.Kubeconfig, "--leader-elect=false", "--metrics-address", address)
	c.cmd.Stdout, c.cmd.Stderr = c.log, c.log
	c.started = time.Now()
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the controller: %w", err)
	}
	return c, nil
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("looking for a port: %w", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String(), nil
}

func (c *controller) pid() int { return c.cmd.Process.Pid }

// stop ends the process in order.
func (c *controller) stop() error {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stopping the controller: %w", err)
	}
	if err := c.cmd.Wait(); err != nil {
		return fmt.Errorf("the controller failed: %w\n%s", err, c.log.String())
	}
	return nil
}

func (c *controller) get(ctx context.Context, path string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.address+path, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", path, resp.Status)
	}
	return string(body), nil
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
		_, err := c.get(ctx, "/readyz")
		return err == nil
	})
}

// synced returns when it has worked on n TApps and nothing waits.
func (c *controller) synced(ctx context.Context, n int) error {
	return c.until(ctx, "has worked on all", func(ctx context.Context) bool {
		metrics, err := c.get(ctx, "/metrics")
		return err == nil && value(metrics, `tapp_sync_duration_seconds_count{queue="tapp"}`) >= float64(n) &&
			value(metrics, `tapp_queue_depth{queue="tapp"}`) == 0
	})
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

// Restarted is how long a new process took from its start, to fill its caches and
// to work on everything once.
type Restarted struct{ Ready, Synced time.Duration }

func (c *tappUser) restart(ctx context.Context) (Restarted, error) {
	var r Restarted
	c.requested = 0
	if err := c.process.stop(); err != nil {
		return r, err
	}
	next, err := c.startController()
	if err != nil {
		return r, err
	}
	c.process = next
	if err := next.ready(ctx); err != nil {
		return r, fmt.Errorf("%w\n%s", err, next.log.String())
	}
	r.Ready = time.Since(next.started)
	err = next.synced(ctx, c.size.Objects)
	r.Synced = time.Since(next.started)
	return r, err
}
