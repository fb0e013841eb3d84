// Package program runs processes that are measured, of `tapp controller` most of all.
package program

import (
	"context"
	"strconv"
	"strings"
	"syscall"

	"tkestack.io/tapp/test/local"
)

// Program is a process of `tapp controller`.
type Program struct {
	*Process
	address string // of its metrics and health
}

// Start returns as soon as the process is there. It leads without an election.
func Start(binary, kubeconfig string, flags ...string) (*Program, error) {
	address, err := local.FreeAddress()
	if err != nil {
		return nil, err
	}
	p, err := Run(binary, append([]string{"controller", "--kubeconfig", kubeconfig, "--leader-elect=false", "--metrics-address", address}, flags...)...)
	if err != nil {
		return nil, err
	}
	return &Program{p, address}, nil
}

// Stop ends the process in order.
func (p *Program) Stop() error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return p.Wait()
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
