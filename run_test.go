package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/util/wait"

	"tkestack.io/tapp/controller"
	"tkestack.io/tapp/webhook"
)

func flagNames(c *cli.Command) []string {
	var out []string
	for _, f := range c.Flags {
		out = append(out, f.Names()...)
	}
	return out
}

// TestRunHasTheFlagsOfBoth: each once.
func TestRunHasTheFlagsOfBoth(t *testing.T) {
	got := flagNames(runCommand("v1", nil))
	want := append(flagNames(controller.Command("v1")), flagNames(webhook.Command("v1"))...)
	want = append(want, "api-listen-address")
	slices.Sort(got)
	slices.Sort(want)
	if want = slices.Compact(want); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestKindsHaveTheSameNames: --controllers says the same to both.
func TestKindsHaveTheSameNames(t *testing.T) {
	if controllers, webhooks := controller.Kinds(), webhook.KnownKinds(); !slices.Equal(controllers, webhooks) {
		t.Errorf("there are controllers of %q, and webhooks of %q", controllers, webhooks)
	}
}

// TestRunWithoutAnAPIServer: it is alive and not ready, keeps trying, and ends well
// when it is told to.
func TestRunWithoutAnAPIServer(t *testing.T) {
	address, served := freeAddress(t), freeAddress(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	var log logged
	app := &cli.App{Name: "tapp", Writer: io.Discard, ErrWriter: &log, Commands: []*cli.Command{runCommand("v1", nil)}, ExitErrHandler: func(*cli.Context, error) {}}
	go func() {
		ended <- app.RunContext(ctx, []string{"tapp", "run", "--master=http://" + freeAddress(t), "--metrics-address=" + address,
			"--listen-address=127.0.0.1:0", "--register-admission", "--tls-dns-name=tapp.ns.svc", "--tls-secret-namespace=ns", "--admission-shutdown-delay=0", "--api-listen-address=" + served})
	}()
	get := func(path string) (int, string) {
		response, err := http.Get("http://" + address + path)
		if err != nil {
			return 0, err.Error()
		}
		defer func() { _ = response.Body.Close() }()
		body, _ := io.ReadAll(response.Body)
		return response.StatusCode, string(body)
	}
	if err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		_, page := get("/metrics")
		return strings.Contains(page, `tapp_api_requests_total{code="",`), nil
	}); err != nil {
		t.Fatalf("it asks nobody: %v", err)
	}
	if code, body := get("/healthz"); code != 200 {
		t.Errorf("/healthz: %d %s", code, body)
	}
	answers(t, served)
	if code, body := get("/readyz"); code != 503 || body != "the caches are not filled yet: those of tapp\nthere is no certificate yet\n" {
		t.Errorf("/readyz: %d %q", code, body)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v\n%s", err, log.String())
	}
}

// answers waits until an HTTPS server says that it is well.
func answers(t *testing.T, address string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}}}
	defer client.CloseIdleConnections()
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/healthz", http.NoBody)
		if err != nil {
			return false, err
		}
		response, err := client.Do(request)
		if err != nil {
			return false, nil
		}
		defer func() { _ = response.Body.Close() }()
		return response.StatusCode == http.StatusOK, nil
	}); err != nil {
		t.Errorf("https://%s/healthz: %v", address, err)
	}
}

// TestAPIOutsideTheCluster: as the original documents start it, with the kubeconfig of a
// cluster that does not answer.
func TestAPIOutsideTheCluster(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: hub\ncontexts: [{name: hub, context: {cluster: hub, user: me}}]\nclusters: [{name: hub, cluster: {server: \"http://" + freeAddress(t) + "\"}}]\nusers: [{name: me, user: {token: none}}]\n"
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	address, ended := freeAddress(t), make(chan error, 1)
	app := newApp(http.NotFoundHandler())
	app.Writer, app.ErrWriter = io.Discard, io.Discard
	go func() {
		ended <- app.RunContext(ctx, commandLine([]string{"/usr/bin/sym-api", "api", "-v", "4", "--kubeconfig=" + kubeconfig, "--listen-address=" + address, "--metrics-address="}))
	}()
	answers(t, address)
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// logged is what goroutines log, each by itself.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
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
