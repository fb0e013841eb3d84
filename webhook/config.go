// Package webhook is `tapp webhook`: the command, the server, and the registration
// of the webhooks. What it serves is the table of kinds.
//
//	review     AdmissionReviews over HTTP; knows no kind
//	rule       rules, findings and the ratchet; knows no kind
//	tapp, app  the webhooks of a kind; they never import each other
package webhook

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"tkestack.io/tapp/certs"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/webhook/app"
	"tkestack.io/tapp/webhook/review"
	"tkestack.io/tapp/webhook/tapp"
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
	// DefaultTopologySpread is how new pods of TApps are spread that do not say it, as the
	// controller has it.
	DefaultTopologySpread string
	// MaxReviews and MaxReviewBytes bound the reviews under way: how many, and the
	// bytes of their bodies.
	MaxReviews     int
	MaxReviewBytes int
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
	// Clients that may call; by default everybody.
	Clients certs.Clients
	// Reads from caches. Those that are nil are made live.
	Reads Reads
	// Served are the kinds that are served; nil: Kinds.
	Served []Kind
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
	tapp.Reads
	// AppsNaming are the Apps of a namespace that name a child of this kind and name.
	AppsNaming app.Naming
}

// Defaults of the configuration, which those of the flags are.
func Defaults() Config {
	return Config{
		ListenAddress: ":8443",
		KubeAPIQPS:    2000,
		KubeAPIBurst:  2500,
		DryRuns:       16,

		DefaultTopologySpread: string(tappv1.SystemTopologySpread),
		// The API server itself handles 200 changes at a time by default.
		MaxReviews:     256,
		MaxReviewBytes: 16 << 20,
		ShutdownDelay:  3 * time.Second,
	}
}

// served are the kinds of the table.
func (c *Config) served() []Kind {
	if c.Served == nil {
		return Kinds()
	}
	return c.Served
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
	reject(!tappv1.DefaultTopologySpread(c.DefaultTopologySpread).IsKnown(), "--default-topology-spread is %q; give None or System", c.DefaultTopologySpread)
	reject(c.MaxReviews < 1, "--admission-max-reviews is %d; give a number above 0", c.MaxReviews)
	reject(c.MaxReviewBytes < review.MaxBytes, "--admission-max-bytes is %d; a single review may have %d", c.MaxReviewBytes, review.MaxBytes)
	reject(c.ShutdownDelay < 0, "--admission-shutdown-delay is %v; give 0 or more", c.ShutdownDelay)
	reject(c.Certificates == nil, "there is no certificate to serve admission with")
	return errors.Join(append(errs, c.Clients.Check())...)
}
