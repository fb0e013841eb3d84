// Package webhook is `tapp webhook`: it completes TApps and judges them before the
// API server stores them, and tells whoever changes one what will happen.
//
// Completing (/mutate/tapp) writes the defaults, the selector and the template
// hashes into the object. Judging (/validate/tapp) is done by rules: each has a
// file (rule_*.go), a name that is a label of metrics, and sentences that say what
// to do. A rule denies or warns. What cannot be told from the TApp alone comes on
// top: whether the cluster takes its pods (pods.go), whether another TApp selects
// them too, and what the rollout will do (preview.go).
//
// Nothing here is needed for safety: the controller is correct without it.
package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	appv1 "tkestack.io/tapp/crd/app/v1"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// Config of Run. Flags fill it; who runs it as a part of a program, and tests, do
// so directly.
type Config struct {
	// Kubeconfig and Master say where the API server is. Both empty: the
	// KUBECONFIG variable, the user's kubeconfig, or the cluster that this runs in.
	Kubeconfig string
	Master     string
	// ListenAddress is where admission is served, by HTTPS.
	ListenAddress string
	// KubeAPIQPS and KubeAPIBurst limit the requests to the API server, most of
	// which are dry-run creates of pods.
	KubeAPIQPS   float64
	KubeAPIBurst int
	// DryRuns is how many pods of one review are tried at a time.
	DryRuns int
	// ShutdownDelay is how long reviews are still answered at the end, while /readyz
	// fails already: the API server learns of the end only after a while.
	ShutdownDelay time.Duration
	// Version of the program, for the user agent.
	Version string

	// REST replaces Kubeconfig and Master if not nil.
	REST *rest.Config
	// Listener replaces ListenAddress if not nil.
	Listener net.Listener
	// Registry takes the metrics; nil: nobody does.
	Registry prometheus.Registerer
	// Certificates to serve with. Who sets them also keeps them current.
	Certificates Certificates
	// Reads from caches. Those that are nil are made live.
	Reads Reads
}

// Certificates is where the server has its certificate from.
type Certificates interface {
	// GetCertificate is that of tls.Config.
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Ready says whether there is a certificate.
	Ready() bool
}

// Reads are what is looked up for a review. What they return is not changed.
type Reads struct {
	// Pods that have the names of a TApp's instances.
	Pods func(context.Context, *tappv1.TApp) ([]*corev1.Pod, error)
	// TApps of a namespace.
	TApps func(ctx context.Context, namespace string) ([]*tappv1.TApp, error)
	// AppsNaming are the Apps of a namespace that name a child of this kind and name.
	AppsNaming func(ctx context.Context, kind, namespace, name string) ([]*appv1.App, error)
	// Resize says whether pods of this cluster can be resized.
	Resize func(context.Context) bool
}

// Defaults of the configuration, which those of the flags are.
func Defaults() Config {
	return Config{
		ListenAddress: ":8443",
		KubeAPIQPS:    2000,
		KubeAPIBurst:  2500,
		DryRuns:       16,
		ShutdownDelay: 3 * time.Second,
	}
}

func (c *Config) validate() error {
	var errs []error
	reject := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	reject(c.ListenAddress == "" && c.Listener == nil, "--listen-address is empty; give an address such as :8443")
	reject(c.KubeAPIQPS <= 0, "--kube-api-qps is %v; give a number above 0", c.KubeAPIQPS)
	reject(c.KubeAPIBurst < 1, "--kube-api-burst is %d; give a number above 0", c.KubeAPIBurst)
	reject(c.DryRuns < 1, "--admission-dry-runs is %d; at least 1 pod has to be tried at a time", c.DryRuns)
	reject(c.ShutdownDelay < 0, "--admission-shutdown-delay is %v; give 0 or more", c.ShutdownDelay)
	reject(c.Certificates == nil, "there is no certificate to serve admission with")
	return errors.Join(errs...)
}
