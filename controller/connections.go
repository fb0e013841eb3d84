package controller

import (
	"context"
	"net"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/client-go/util/flowcontrol"

	"tkestack.io/tapp/process"
)

const (
	// eventTimeout is short: nothing may hang on an event.
	eventTimeout = 10 * time.Second
	// requestTimeout of reads and writes. Admission webhooks may take 30 s.
	requestTimeout = 60 * time.Second
	// dialTimeout of watches, and how often their connection is probed: client-go's own.
	dialTimeout = 30 * time.Second
	// watchRetry is how long a watch waits for an API server that cannot be reached.
	watchRetry = time.Second
)

// connections are configurations to make clients of one cluster with. Clients made of
// one share its rate limit; those of different ones never wait for each other.
type connections struct {
	// requests reads and writes.
	requests *rest.Config
	// watches fills caches. It has no rate limit and no timeout, and waits for an API
	// server that cannot be reached.
	watches *rest.Config
	events  *rest.Config
	leases  *rest.Config
}

func (c *Config) connect(m *requestMetrics) (connections, error) {
	base, err := process.FindAPIServer(c.REST, c.Kubeconfig, c.Master)
	if err != nil {
		return connections{}, err
	}
	process.Introduce(base, c.Version, "controller")
	// As in Kubernetes' own controllers: each event of a watch would be compressed for us
	// alone, which takes the API server longer than the cluster's network saves.
	base.DisableCompression = true
	base.Wrap(transport.Wrappers(m.wrap, c.Wrap))
	return connections{
		requests: with(base, func(r *rest.Config) {
			r.Timeout = requestTimeout
			r.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(float32(c.KubeAPIQPS), c.KubeAPIBurst)
		}),
		watches: with(base, func(r *rest.Config) { r.QPS = -1; r.Wrap(newHeldReads); useOwnConnection(r) }),
		events: with(base, func(r *rest.Config) {
			r.Timeout = eventTimeout
			r.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(50, 100)
		}),
		leases: with(base, func(r *rest.Config) { r.Timeout = max(c.Election.RenewDeadline/2, time.Second) }),
	}, nil
}

func with(base *rest.Config, change func(*rest.Config)) *rest.Config {
	c := rest.CopyConfig(base)
	change(c)
	return c
}

// useOwnConnection keeps clients off the connection that client-go has all others
// share. Go's HTTP/2 server lets the streams of a connection write in turns, and an
// event of a pod takes two: while many writes are answered, the watches on their
// connection fall behind (by 12 s where 32 workers created 3,000 pods), and each sync
// waits for them to show its own last writes. No request waits for an answer on it, so
// that reads may be batched.
func useOwnConnection(r *rest.Config) {
	if r.Dial == nil {
		r.Dial = batchReads((&net.Dialer{Timeout: dialTimeout, KeepAlive: dialTimeout}).DialContext)
	}
}

// heldReads holds reads until the API server can be reached. The error would reach a
// reflector otherwise, whose backoff grows to a minute: the caches would stay behind for
// as long after the API server has returned.
type heldReads struct {
	next http.RoundTripper
}

func newHeldReads(next http.RoundTripper) http.RoundTripper { return &heldReads{next: next} }

func (h *heldReads) RoundTrip(r *http.Request) (response *http.Response, err error) {
	if r.Method != http.MethodGet {
		return h.next.RoundTrip(r)
	}
	// The error that tells why is the last one of the API server, not that of the context.
	_ = wait.PollUntilContextCancel(r.Context(), watchRetry, true, func(context.Context) (bool, error) {
		response, err = h.next.RoundTrip(r) //nolint:bodyclose // the caller has it
		return err == nil, nil
	})
	return response, err
}

// WrappedRoundTripper lets client-go find the transport inside.
func (h *heldReads) WrappedRoundTripper() http.RoundTripper { return h.next }
