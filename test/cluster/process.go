package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"tkestack.io/tapp/test/local"
)

// Process is a run of tapp as a process of its own.
type Process struct {
	Log     string // file
	address string // of metrics and health
	cmd     *exec.Cmd
	ended   chan struct{}
	err     error // of its end
}

// Launch starts `tapp COMMAND` with flags. It need not become ready.
func (c *Cluster) Launch(command string, flags ...string) (*Process, error) {
	address, err := local.FreeAddress()
	if err != nil {
		return nil, err
	}
	log, err := os.CreateTemp(filepath.Dir(c.LogFile("")), "tapp-*.log")
	if err != nil {
		return nil, fmt.Errorf("make a log file: %w", err)
	}
	p := &Process{Log: log.Name(), address: address, ended: make(chan struct{})}
	p.cmd = exec.Command(c.Program("tapp"), append([]string{command, "--kubeconfig", c.Kubeconfig, "--metrics-address", address}, flags...)...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start tapp, which TAPP_BIN should name (run these tests by `make`, which lists its targets): %w", err), log.Close())
	}
	go func() {
		defer close(p.ended)
		defer func() { _ = log.Close() }()
		p.err = p.cmd.Wait()
	}()
	return p, nil
}

// Get a page of its metrics and health.
func (p *Process) Get(ctx context.Context, path string) (string, error) {
	return local.Get(ctx, p.address, path)
}

// WaitReady waits until it is ready to work; that it ended is an error.
func (p *Process) WaitReady(ctx context.Context) error {
	var ended error
	err := Poll(ctx, Patience, func(ctx context.Context) error {
		if ended = p.Ended(); ended != nil {
			return nil
		}
		_, err := p.Get(ctx, "/readyz")
		return err
	})
	if err = errors.Join(err, ended); err != nil {
		return fmt.Errorf("tapp is not ready: %w\n%s", err, p.Tail(4000))
	}
	return nil
}

// Ended is nil while it runs, and else says how it ended.
func (p *Process) Ended() error {
	select {
	case <-p.ended:
		return fmt.Errorf("tapp ended (%v), see %s", p.err, p.Log) //nolint:errorlint // nil is a way to end, too
	default:
		return nil
	}
}

// Kill ends it as a crash does.
func (p *Process) Kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill tapp: %w", err)
	}
	<-p.ended
	return nil
}

// Terminate asks it to end, as a kubelet does.
func (p *Process) Terminate() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("terminate tapp: %w", err)
	}
	return nil
}

// WaitEnd waits until it has ended in order, after it was asked to.
func (p *Process) WaitEnd() error {
	select {
	case <-p.ended:
	case <-time.After(Patience):
		return errors.Join(fmt.Errorf("tapp has not ended %s after SIGTERM, see %s", Patience, p.Log), p.Kill())
	}
	if p.err != nil {
		return fmt.Errorf("tapp did not end in order: %w\n%s", p.err, p.Tail(2000))
	}
	return nil
}

// Stop terminates it, and waits for its end.
func (p *Process) Stop() error {
	if err := p.Terminate(); err != nil {
		return err
	}
	return p.WaitEnd()
}

// Tail is the end of its log.
func (p *Process) Tail(n int) string {
	data, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	if len(data) > n {
		data = append([]byte("..."), bytes.TrimSpace(data[len(data)-n:])...)
	}
	return "the end of " + p.Log + ":\n" + string(data)
}
