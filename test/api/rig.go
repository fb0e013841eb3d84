//go:build cluster

// Package api tests `tapp api` against a real API server, with tokens and rights that are
// real, on simulated nodes. The server runs in the process of the tests.
package api

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"tkestack.io/tapp/api/server"
	"tkestack.io/tapp/controller"
	"tkestack.io/tapp/test/cluster"
)

// rig is a test's namespace with the controller and the API in front of it.
type rig struct {
	*cluster.Rig
	url      string
	client   *http.Client
	registry *prometheus.Registry
}

// newRig starts a controller and an API for the test's namespace.
func newRig(t *testing.T, change ...func(*server.Config)) *rig {
	t.Helper()
	r := &rig{Rig: cluster.New(t, "api")}
	r.ForceDeletePods()
	r.Start([]string{"tapp", "app"})
	r.serve(change...)
	return r
}

// kinds that the tests need.
var kinds = controller.Kinds()

// serve runs the API until the test ends.
func (r *rig) serve(change ...func(*server.Config)) {
	r.Helper()
	c := server.Defaults()
	c.REST, c.MetricsAddress, c.Version, c.Registry = rest.CopyConfig(r.Config), "", "api-test", prometheus.NewRegistry()
	c.Limits.Linger = time.Second
	var err error
	if c.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		r.Fatal(err)
	}
	for _, f := range change {
		f(&c)
	}
	r.registry = c.Registry
	logger := ktesting.NewLogger(r.T, ktesting.NewConfig(ktesting.Verbosity(2), ktesting.BufferLogs(true)))
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), logger))
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx, c) }()
	r.Cleanup(func() {
		r.client.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			r.Errorf("the API ended with %v", err)
		}
	})
	r.url = "https://" + c.Listener.Addr().String()
	r.client = newClient()
}

// authority is the CA of the API server.
func (r *rig) authority() []byte {
	r.Helper()
	config := rest.CopyConfig(r.Config)
	if err := rest.LoadTLSFiles(config); err != nil {
		r.Fatal(err)
	}
	return config.CAData
}

// newClient does not verify the certificate, which is of this run.
func newClient(certificates ...tls.Certificate) *http.Client {
	return &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13, Certificates: certificates}}}
}

// user makes a service account with these rights in the namespace, and returns a token of it.
func (r *rig) user(name string, rules ...rbacv1.PolicyRule) string {
	r.Helper()
	ctx, core, rbac := r.Context(), r.Kube.CoreV1(), r.Kube.RbacV1()
	if _, err := core.ServiceAccounts(r.NS).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		r.Fatal(err)
	}
	if len(rules) > 0 {
		if _, err := rbac.Roles(r.NS).Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{}); err != nil {
			r.Fatal(err)
		}
		if _, err := rbac.RoleBindings(r.NS).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: name, Namespace: r.NS}},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}}, metav1.CreateOptions{}); err != nil {
			r.Fatal(err)
		}
	}
	token, err := core.ServiceAccounts(r.NS).CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		r.Fatal(err)
	}
	return token.Status.Token
}

// rule of a role.
func rule(verbs, group, resources string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: strings.Fields(verbs), APIGroups: []string{group}, Resources: strings.Fields(resources)}
}

// viewer may see everything that the API shows.
func (r *rig) viewer() string {
	return r.user("viewer", rule("get list", "apps.tkestack.io", "tapps"), rule("get list", "appcontroller.k8s.io", "apps"), rule("get", "", "pods pods/log"))
}

// do sends a request. The caller closes the body.
func (r *rig) do(ctx context.Context, method, path, token, body string, headers ...string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, r.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	return r.client.Do(request)
}

// ask sends a request, and returns the code and the body.
func (r *rig) ask(method, path, token, body string, headers ...string) (*http.Response, string) {
	r.Helper()
	response, err := r.do(r.Context(), method, path, token, body, headers...)
	if err != nil {
		r.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		r.Fatal(err)
	}
	return response, string(text)
}

// get decodes an answer that has to be well.
func get[T any](r *rig, path, token string) (out T) {
	r.Helper()
	response, body := r.ask(http.MethodGet, path, token, "")
	if response.StatusCode != http.StatusOK {
		r.Fatalf("GET %s: %d %s", path, response.StatusCode, body)
	}
	if err := json.Unmarshal([]byte(body), &out); err != nil {
		r.Fatalf("GET %s: %v", path, err)
	}
	return out
}

// event of a stream.
type event struct{ name, id, data string }

// stream reads the events of one.
type stream struct {
	response *http.Response
	events   chan event
}

// watch opens a stream, whose events are read until it ends.
func (r *rig) watch(path, token string, headers ...string) *stream {
	r.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r.Cleanup(cancel)
	s, err := r.open(ctx, path, token, headers...)
	if err != nil {
		r.Fatal(err)
	}
	return s
}

func (r *rig) open(ctx context.Context, path, token string, headers ...string) (*stream, error) {
	response, err := r.do(ctx, http.MethodGet, path, token, "", headers...)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		return nil, fmt.Errorf("GET %s: %d %s", path, response.StatusCode, body)
	}
	s := &stream{response: response, events: make(chan event, 1024)}
	go s.read()
	return s, nil
}

func (s *stream) read() {
	defer close(s.events)
	defer func() { _ = s.response.Body.Close() }()
	lines := bufio.NewReaderSize(s.response.Body, 64<<10)
	var e event
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch key {
		case "event":
			e.name = value
		case "id":
			e.id = value
		case "data":
			e.data = value
		case "":
			if e.name != "" {
				s.events <- e
			}
			e = event{}
		}
	}
}

// next event of this name; others are passed over.
func (s *stream) next(r *rig, name string) event {
	r.Helper()
	limit := time.After(cluster.Patience)
	for {
		select {
		case e, open := <-s.events:
			if !open {
				r.Fatalf("the stream ended before an event %s", name)
			}
			if e.name == name {
				return e
			}
		case <-limit:
			r.Fatalf("there was no event %s", name)
		}
	}
}

// until an event of this name satisfies a condition.
func (s *stream) until(r *rig, name string, fits func(data string) bool) event {
	r.Helper()
	for {
		if e := s.next(r, name); fits(e.data) {
			return e
		}
	}
}

// metric sums one of the API's.
func (r *rig) metric(name string) float64 {
	families, err := r.registry.Gather()
	if err != nil {
		r.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// equals waits until a metric has a value.
func (r *rig) equals(name string, want float64) {
	r.Helper()
	r.Eventually(name, func(context.Context) error {
		if got := r.metric(name); got != want {
			return fmt.Errorf("it is %v, want %v", got, want)
		}
		return nil
	})
}

var errNotYet = errors.New("not yet")
