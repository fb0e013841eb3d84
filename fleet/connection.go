package fleet

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"tkestack.io/tapp/crd/client"
	"tkestack.io/tapp/fleet/kubeconfig"
)

const (
	// requestTimeout of reads and writes.
	requestTimeout = 10 * time.Second
	// listTimeout of one page.
	listTimeout    = 30 * time.Second
	dialTimeout    = 5 * time.Second
	requestsPerSec = 50
	requestsBurst  = 100
)

// errRedirect: an API server does not redirect, and credentials follow nobody.
var errRedirect = errors.New("the server sends its callers elsewhere, which no API server does")

// connection to a member: own transports, which no other member shares, and no cache of
// client-go's keeps.
type connection struct {
	requests requests
	watches  transported
}

// transported are clients over one transport.
type transported struct {
	gate  *gate
	parts client.AdvDeploymentsGetter
	// core has no rate limit; it probes and asks for the identity.
	core corev1client.CoreV1Interface
}

// requests are the clients for all that is no watch.
type requests struct {
	transported
	// secrets and heads are for the archives of charts, with their rate limit.
	secrets corev1client.SecretsGetter
	heads   metadata.Interface
	leases  coordinationv1client.LeasesGetter
}

// connect makes clients. verify is asked about each connection before it is used.
func connect(config *rest.Config, over Network, verify func(context.Context, corev1client.CoreV1Interface) error) (*connection, error) {
	c := &connection{}
	var limited *rest.Config
	var err error
	c.requests.transported, limited, err = transportedBy(config, over, func(r *rest.Config) {
		r.Timeout = requestTimeout
		r.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(requestsPerSec, requestsBurst)
	})
	if err != nil {
		return nil, err
	}
	if c.requests.leases, err = coordinationv1client.NewForConfig(limited); err != nil {
		return nil, fmt.Errorf("making a client of Leases: %w", err)
	}
	if c.requests.secrets, err = corev1client.NewForConfig(limited); err != nil {
		return nil, fmt.Errorf("making a client of charts: %w", err)
	}
	if c.requests.heads, err = metadata.NewForConfig(limited); err != nil {
		return nil, fmt.Errorf("making a client of charts: %w", err)
	}
	if c.watches, _, err = transportedBy(config, over, func(r *rest.Config) { r.QPS = -1 }); err != nil {
		return nil, err
	}
	for _, t := range []transported{c.requests.transported, c.watches} {
		t.gate.verify = func(ctx context.Context) error { return verify(ctx, t.core) }
	}
	return c, nil
}

func (c *connection) close() {
	c.requests.gate.close()
	c.watches.gate.close()
}

// transportedBy makes a transport, its clients, and the changed configuration for more of them.
func transportedBy(config *rest.Config, over Network, change func(*rest.Config)) (t transported, limited *rest.Config, err error) {
	own := rest.CopyConfig(config)
	server, _, err := rest.DefaultServerUrlFor(own) // the clients below see no certificate, and would take http
	if err != nil {
		return t, nil, fmt.Errorf("reading the address of the server: %w", err)
	}
	t.gate = newGate(over.Dial)
	own.Dial, own.DisableCompression = t.gate.dial, true
	own.Proxy = http.ProxyFromEnvironment // client-go would do the same, and keep the transport for ever
	if t.gate.next, err = over.Transport(own); err != nil {
		return t, nil, fmt.Errorf("making a transport: %w", err)
	}
	// The clients get the finished transport, with its credentials, and none besides.
	plain := &rest.Config{Host: server.String(), UserAgent: config.UserAgent, Transport: t.gate}
	limited = rest.CopyConfig(plain)
	change(limited)
	if t.parts, err = client.NewAdvDeployments(limited); err != nil {
		return t, nil, fmt.Errorf("making a client of AdvDeployments: %w", err)
	}
	plain.QPS = -1
	if t.core, err = corev1client.NewForConfig(plain); err != nil {
		return t, nil, fmt.Errorf("making a client of the core API: %w", err)
	}
	return t, limited, nil
}

// refuseLocal looks at the address that a name was resolved to.
func refuseLocal(allow bool) func(context.Context, string, string, syscall.RawConn) error {
	if allow {
		return nil
	}
	return func(_ context.Context, _, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("dialling %s: %w", address, err)
		}
		if kubeconfig.IsLocal(to.Addr()) {
			return fmt.Errorf("the server's name leads to %s, which is the hub's own machine and not a member", to.Addr())
		}
		return nil
	}
}
