package controller

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"

	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/client-go/util/flowcontrol"

	"tkestack.io/tapp/crd/client"
	"tkestack.io/tapp/process"
)

// smallTimeout of requests that nothing may hang on: events, and those of the
// election are bounded by its deadlines.
const smallTimeout = 10 * time.Second

// writeTimeout of reads and writes. Admission webhooks may take 30 s.
const writeTimeout = 60 * time.Second

// dialTimeout of watches, and how often their connection is probed: client-go's own.
const dialTimeout = 30 * time.Second

// clients of the API server. Those that must not wait for each other have rate
// limits of their own.
type clients struct {
	tapps client.Interface
	core  corev1client.CoreV1Interface
	apps  appsv1client.AppsV1Interface
	// watching has connections of its own, no rate limit and no timeout, and patience
	// with an API server that is away.
	watchingTApps client.Interface
	watchingCore  corev1client.CoreV1Interface
	watchingApps  appsv1client.AppsV1Interface
	// ownApps are the Apps; apps is the API group of Deployments.
	ownApps         client.AppsGetter
	watchingOwnApps client.AppsGetter
	events          corev1client.EventsGetter
	leases          coordinationv1client.CoordinationV1Interface
	dynamic         dynamic.Interface
}

func (c *Config) newClients(m *requestMetrics) (*clients, error) {
	base, err := process.FindAPIServer(c.REST, c.Kubeconfig, c.Master)
	if err != nil {
		return nil, err
	}
	base.UserAgent = fmt.Sprintf("tapp/%s (%s/%s) controller", c.Version, runtime.GOOS, runtime.GOARCH)
	base.AcceptContentTypes = kruntime.ContentTypeProtobuf + "," + kruntime.ContentTypeJSON
	base.ContentType = kruntime.ContentTypeProtobuf
	// As in Kubernetes' own controllers: each event of a watch would be compressed for us
	// alone, which takes the API server longer than the cluster's network saves.
	base.DisableCompression = true
	base.Wrap(transport.Wrappers(m.wrap, c.Wrap))

	working := with(base, func(r *rest.Config) {
		r.Timeout = writeTimeout
		r.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(float32(c.KubeAPIQPS), c.KubeAPIBurst)
	})
	watching := with(base, func(r *rest.Config) { r.QPS = -1; r.Wrap(newPatience); ownConnections(r) })
	events := with(base, func(r *rest.Config) { r.Timeout = smallTimeout; r.QPS, r.Burst = 50, 100 })
	leases := with(base, func(r *rest.Config) { r.Timeout = max(c.Election.RenewDeadline/2, time.Second) })
	plain := with(base, func(r *rest.Config) {
		r.ContentType, r.AcceptContentTypes = kruntime.ContentTypeJSON, kruntime.ContentTypeJSON
	})

	var out clients
	for _, make := range []func() error{
		func() (err error) { out.tapps, err = client.New(working); return },
		func() (err error) { out.core, err = corev1client.NewForConfig(working); return },
		func() (err error) { out.apps, err = appsv1client.NewForConfig(working); return },
		func() (err error) { out.watchingApps, err = appsv1client.NewForConfig(watching); return },
		func() (err error) { out.watchingTApps, err = client.New(watching); return },
		func() (err error) { out.watchingCore, err = corev1client.NewForConfig(watching); return },
		func() (err error) { out.ownApps, err = client.NewApps(working); return },
		func() (err error) { out.watchingOwnApps, err = client.NewApps(watching); return },
		func() (err error) { out.events, err = corev1client.NewForConfig(events); return },
		func() (err error) { out.leases, err = coordinationv1client.NewForConfig(leases); return },
		func() (err error) { out.dynamic, err = dynamic.NewForConfig(plain); return },
	} {
		if err := make(); err != nil {
			return nil, fmt.Errorf("making clients: %w", err)
		}
	}
	return &out, nil
}

// ownConnections keeps the clients that are made of a configuration off the connection
// that client-go has all others share. Go's HTTP/2 server lets the streams of a
// connection write in turns, and an event of a pod takes two: while many writes are
// answered, the watches on their connection fall behind (by 12 s where 32 workers created
// 3,000 pods), and each sync waits for them to show its own last writes. No request waits
// for an answer there, so that what comes may be gathered.
func ownConnections(r *rest.Config) {
	if r.Dial == nil {
		r.Dial = gathering((&net.Dialer{Timeout: dialTimeout, KeepAlive: dialTimeout}).DialContext)
	}
}

func with(base *rest.Config, change func(*rest.Config)) *rest.Config {
	c := rest.CopyConfig(base)
	change(c)
	return c
}

// namespaceOfLease is the one of the pod that this runs in.
func namespaceOfLease() string {
	const mounted = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
	if b, err := os.ReadFile(mounted); err == nil {
		if ns := strings.TrimSpace(string(b)); ns != "" {
			return ns
		}
	}
	return "kube-system"
}

// patience holds requests that fill caches until the API server is back. The
// error would reach a reflector otherwise, whose backoff grows to a minute: as
// long the caches would stay behind after the API server has returned.
type patience struct {
	next http.RoundTripper
	wait time.Duration
}

func newPatience(next http.RoundTripper) http.RoundTripper {
	return &patience{next: next, wait: time.Second}
}

func (p *patience) RoundTrip(r *http.Request) (*http.Response, error) {
	for {
		response, err := p.next.RoundTrip(r)
		if err == nil || r.Method != http.MethodGet {
			return response, err
		}
		select {
		case <-r.Context().Done():
			return nil, err
		case <-time.After(p.wait):
		}
	}
}

// WrappedRoundTripper lets client-go find the transport inside.
func (p *patience) WrappedRoundTripper() http.RoundTripper { return p.next }
