package program

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// Process is a program that runs.
type Process struct {
	Started time.Time
	cmd     *exec.Cmd
	log     bytes.Buffer
	ended   chan struct{}
	err     error // why it ended, once it has
}

// Run returns as soon as the process is there.
func Run(name string, arguments ...string) (*Process, error) {
	p := &Process{cmd: exec.Command(name, arguments...), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	p.Started = time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// Ended is closed when the process has.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// PID of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Log is what it has written; only of one that has ended, or failed, is it whole.
func (p *Process) Log() string { return p.log.String() }

// Signal the process.
func (p *Process) Signal(signal os.Signal) error {
	if err := p.cmd.Process.Signal(signal); err != nil {
		return fmt.Errorf("sending %s to %s: %w", signal, p.cmd.Path, err)
	}
	return nil
}

// Wait until the process has ended. The error has what it has written.
func (p *Process) Wait() error {
	<-p.ended
	if p.err != nil {
		return fmt.Errorf("%s failed: %w\n%s", p.cmd.Path, p.err, p.log.String())
	}
	return nil
}

// Kill the process, and wait until it is gone.
func (p *Process) Kill() error {
	err := p.cmd.Process.Kill()
	<-p.ended
	return err
}
