//go:build cluster

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// ourAgent is how the controller's user agent begins.
	ourAgent = "tapp/"
	// leaseName is the lease that the leader holds.
	leaseNamespace, leaseName = "kube-system", "tapp-controller"
)

// process is a running `tapp controller`.
type process struct {
	cmd    *exec.Cmd
	health string // address
	log    string // file
	hasty  bool   // its flags give a busy machine no time to release the lease
	done   chan error
}

// startController starts tapp, with further flags, and waits until it is ready to
// work.
func startController(ctx context.Context, flags ...string) (*process, error) {
	bin := os.Getenv("TAPP_BIN")
	if bin == "" {
		return nil, errors.New("TAPP_BIN names no tapp program: run these tests by `make e2e`")
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(suite.kubeconfig)
	p := &process{hasty: len(flags) > 0, health: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), done: make(chan error, 1)}
	log, err := os.CreateTemp(filepath.Join(dir, "logs"), "tapp-e2e-*.log")
	if err != nil {
		return nil, fmt.Errorf("make a log file: %w", err)
	}
	defer func() { _ = log.Close() }()
	p.log = log.Name()
	p.cmd = exec.Command(bin, append([]string{"controller", "--kubeconfig", suite.kubeconfig, "--create-crd",
		"--metrics-address", p.health, "--v", "3"}, flags...)...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start tapp: %w", err)
	}
	go func() { p.done <- p.cmd.Wait() }()
	began := time.Now().Truncate(time.Microsecond) // as a lease says it
	err = poll(ctx, patience, func(ctx context.Context) error {
		if p.ended() {
			return nil // reported below
		}
		if err := p.healthy(ctx); err != nil {
			return err
		}
		return ledSince(ctx, began)
	})
	if err == nil && p.ended() {
		err = errors.New("it ended")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("tapp is not ready: %w\n%s", err, p.tail(4000)), p.kill())
	}
	return p, nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func (p *process) healthy(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.health+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("/readyz says %s", response.Status)
	}
	return nil
}

func (p *process) ended() bool {
	select {
	case err := <-p.done:
		p.done <- err
		return true
	default:
		return false
	}
}

// stop ends tapp in order: it must exit with 0 and give its lease back, so that
// the next one can begin at once.
func (p *process) stop(ctx context.Context) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop tapp: %w", err)
	}
	select {
	case err := <-p.done:
		p.done <- err
		if err != nil {
			return fmt.Errorf("tapp did not end well after SIGTERM: %w\n%s", err, p.tail(2000))
		}
	case <-time.After(patience):
		return errors.Join(fmt.Errorf("tapp has not ended %s after SIGTERM", patience), p.kill())
	}
	if p.hasty {
		return nil
	}
	lease, err := theLease(ctx)
	if err != nil {
		return err
	}
	if holder := lease.Spec.HolderIdentity; holder != nil && *holder != "" {
		return fmt.Errorf("the lease is still held by %s", *holder)
	}
	return nil
}

// theLease reads the leader's lease.
func theLease(ctx context.Context) (*coordinationv1.Lease, error) {
	lease, err := suite.kube.CoordinationV1().Leases(leaseNamespace).Get(ctx, leaseName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the lease: %w", err)
	}
	return lease, nil
}

// ledSince returns nil when somebody has become the leader since.
func ledSince(ctx context.Context, since time.Time) error {
	lease, err := theLease(ctx)
	if err != nil {
		return err
	}
	if l := lease.Spec; l.HolderIdentity == nil || *l.HolderIdentity == "" || l.AcquireTime == nil || l.AcquireTime.Time.Before(since) {
		return fmt.Errorf("it does not lead: the lease is %+v", lease.Spec)
	}
	return nil
}

// kill ends tapp as a crash does.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill tapp: %w", err)
	}
	err := <-p.done
	p.done <- err
	return nil
}

// tail returns the end of the log.
func (p *process) tail(n int) string {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	if len(data) > n {
		data = append([]byte("..."), bytes.TrimSpace(data[len(data)-n:])...)
	}
	return "the end of " + p.log + ":\n" + string(data)
}
