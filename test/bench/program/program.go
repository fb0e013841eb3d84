// Package program runs `tapp controller` as a process that is measured.
package program

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tkestack.io/tapp/test/local"
)

// Program is a process of `tapp controller`.
type Program struct {
	Started time.Time
	cmd     *exec.Cmd
	log     bytes.Buffer
	address string // of its metrics and health
}

// Start returns as soon as the process is there. It leads without an election.
func Start(binary, kubeconfig string, flags ...string) (*Program, error) {
	address, err := local.FreeAddress()
	if err != nil {
		return nil, err
	}
	p := &Program{address: address}
	p.cmd = exec.Command(binary, append([]string{"controller", "--kubeconfig", kubeconfig, "--leader-elect=false", "--metrics-address", address}, flags...)...)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	p.Started = time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the controller: %w", err)
	}
	return p, nil
}

// PID of the process.
func (p *Program) PID() int { return p.cmd.Process.Pid }

// Log is what it has written; only of one that has ended, or failed, is it whole.
func (p *Program) Log() string { return p.log.String() }

// Stop ends the process in order.
func (p *Program) Stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stopping the controller: %w", err)
	}
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("the controller failed: %w\n%s", err, p.log.String())
	}
	return nil
}

// Get a page of its metrics and health. Any status but 200 is an error.
func (p *Program) Get(ctx context.Context, path string) (string, error) {
	return local.Get(ctx, p.address, path)
}

// Value of a metric on the page /metrics; -1 if there is none.
func Value(metrics, name string) float64 {
	for line := range strings.Lines(metrics) {
		if text, ok := strings.CutPrefix(line, name+" "); ok {
			if v, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err == nil {
				return v
			}
		}
	}
	return -1
}
