//go:build cluster

package failover

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"tkestack.io/tapp/test/cluster"
)

// replica is a process of tapp.
type replica struct {
	t       *testing.T
	cmd     *exec.Cmd
	address string // of metrics and health
	log     string // file
	ended   chan struct{}
	err     error // of its end
}

// startReplica starts `tapp COMMAND` with flags, and waits until it is ready.
func startReplica(t *testing.T, command string, flags ...string) *replica {
	t.Helper()
	r := launch(t, command, flags...)
	r.eventually("it is ready", func() string { _, err := r.get("/readyz"); return cluster.Words(err) })
	return r
}

// launch starts a replica that need not become ready.
func launch(t *testing.T, command string, flags ...string) *replica {
	t.Helper()
	bin, kubeconfig := os.Getenv("TAPP_BIN"), os.Getenv("TAPP_KUBECONFIG")
	if bin == "" || kubeconfig == "" {
		t.Fatal("TAPP_BIN or TAPP_KUBECONFIG is not set: run these tests by `make failover-test`")
	}
	log, err := os.CreateTemp(filepath.Join(filepath.Dir(kubeconfig), "logs"), "tapp-failover-*.log")
	if err != nil {
		t.Fatal(err)
	}
	r := &replica{t: t, address: freeAddress(t), log: log.Name(), ended: make(chan struct{})}
	r.cmd = exec.Command(bin, append([]string{command, "--kubeconfig", kubeconfig, "--metrics-address", r.address, "--v", "2"}, flags...)...)
	r.cmd.Stdout, r.cmd.Stderr = log, log
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(r.ended)
		defer func() { _ = log.Close() }()
		r.err = r.cmd.Wait()
	}()
	t.Cleanup(r.kill)
	return r
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// get a page of the replica.
func (r *replica) get(path string) (string, error) {
	response, err := http.Get("http://" + r.address + path)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s says %s: %s", path, response.Status, body)
	}
	return string(body), err
}

var leads = regexp.MustCompile(`(?m)^tapp_leader 1$`)

func (r *replica) isLeader() bool {
	page, err := r.get("/metrics")
	return err == nil && leads.MatchString(page)
}

// kill ends the replica as a crash does.
func (r *replica) kill() {
	if err := r.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		r.t.Errorf("kill: %v", err)
	}
	<-r.ended
}

// terminate asks the replica to end, as a kubelet does.
func (r *replica) terminate() {
	r.t.Helper()
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		r.t.Fatal(err)
	}
}

// hasEnded waits for the end of a replica that was asked to.
func (r *replica) hasEnded() {
	r.t.Helper()
	select {
	case <-r.ended:
	case <-time.After(cluster.Patience):
		r.t.Fatalf("it does not end, see %s", r.log)
	}
	if r.err != nil {
		r.t.Errorf("it ended with %v, see %s", r.err, r.log)
	}
}

// eventually waits until a condition holds; it returns what is missing, or "".
func (r *replica) eventually(what string, missing func() string) {
	r.t.Helper()
	cluster.Eventually(r.t, what, func() string {
		select {
		case <-r.ended:
			r.t.Fatalf("tapp ended: %v, see %s", r.err, r.log)
		default:
		}
		return missing()
	})
}
