package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/urfave/cli/v2"
	admissionclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	"k8s.io/client-go/rest"

	"tkestack.io/tapp/certs"
	"tkestack.io/tapp/process"
)

// Admission is the webhooks with all that they need to be called: a certificate
// that is kept current and, if that is asked for, their registration.
type Admission struct {
	Config
	// TLS says where the certificate comes from.
	TLS certs.Config
	// Register applies the webhook configurations at the start. Without files of a
	// certificate it has TLS be self-managed.
	Register bool
	// Kinds whose webhooks Register is about, by the names of KnownKinds. All of them
	// are served.
	Kinds []string
	// SecureMetricsAddress is where /metrics is served by HTTPS, with the certificate of
	// the webhooks, to those who may get it; empty: nowhere.
	SecureMetricsAddress string
	// Namespace whose objects alone the registered webhooks are for; empty: of all.
	Namespace string

	source *certs.Source
	server *server
	client admissionclient.AdmissionregistrationV1Interface
	bundle []byte // the CA to register; nil: it is injected later
}

// NewAdmission makes one with the defaults of the flags.
func NewAdmission(version string) *Admission {
	a := &Admission{Config: Defaults(), TLS: certs.Defaults(), Kinds: []string{KindTApp}}
	a.Version = version
	return a
}

// Flags fill the configuration.
func (a *Admission) Flags() []cli.Flag {
	return process.Union(a.Config.Flags(), a.TLS.Flags(), []cli.Flag{
		&cli.BoolFlag{Name: "register-admission", Usage: "apply the MutatingWebhookConfiguration and the ValidatingWebhookConfiguration at the start, for the first --tls-dns-name", Destination: &a.Register, Value: a.Register},
		&cli.GenericFlag{Name: "controllers", Usage: "`kinds` whose webhooks --register-admission registers, with commas between them: tapp, app", Value: (*process.Names)(&a.Kinds)},
		&cli.StringFlag{Name: "metrics-secure-address", Usage: "`address` at which /metrics is served by HTTPS to those whose token may get it, and not at --metrics-address any more; empty: nowhere", Destination: &a.SecureMetricsAddress},
		&cli.StringFlag{Name: "namespace", Usage: "register the webhooks by --register-admission for the objects of this `namespace` only", Destination: &a.Namespace},
	})
}

// Prepare makes the parts, registers their metrics, and opens the port. Nothing is
// asked of the API server before Run.
func (a *Admission) Prepare() error {
	api, err := process.FindAPIServer(a.REST, a.Kubeconfig, a.Master)
	if err != nil {
		return err
	}
	a.REST = api
	if a.Register {
		if err := a.prepareRegistration(); err != nil {
			return err
		}
	}
	if a.source, err = a.TLS.Source(rest.CopyConfig(api)); err != nil {
		return err
	}
	a.Certificates = a.source
	if a.Registry == nil {
		a.Registry = prometheus.NewRegistry()
	}
	a.Registry.MustRegister(a.source.Collector())
	if a.server, err = newServer(a.Config); err != nil {
		return err
	}
	if a.Listener == nil {
		if a.Listener, err = net.Listen("tcp", a.ListenAddress); err != nil {
			return fmt.Errorf("listening for reviews: %w", err)
		}
	}
	return nil
}

func (a *Admission) prepareRegistration() error {
	if err := process.Names(a.Kinds).Among("--controllers", namesOf(a.served())...); err != nil {
		return err
	}
	if len(a.TLS.DNSNames) == 0 {
		return errors.New("--register-admission needs --tls-dns-name, by which the API server shall call: give <service>.<namespace>.svc")
	}
	var err error
	if a.client, err = admissionclient.NewForConfig(rest.CopyConfig(a.REST)); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	if a.TLS.CertFile == "" && a.TLS.KeyFile == "" && a.TLS.CAFile == "" {
		a.TLS.SelfManaged = true
		return nil
	}
	if a.TLS.CAFile == "" {
		return errors.New("--register-admission needs --tlsCAFile, which the API server shall trust; without any --tls...File, TApp makes certificates of its own")
	}
	if a.bundle, err = os.ReadFile(a.TLS.CAFile); err != nil {
		return fmt.Errorf("--tlsCAFile: %w", err)
	}
	return nil
}

// ServeMetrics adds a part that serves metrics at SecureMetricsAddress. It returns
// those that are still to be served elsewhere. Prepare goes first.
func (a *Admission) ServeMetrics(parts *process.Parts, metrics prometheus.Gatherer) (rest prometheus.Gatherer, err error) {
	if a.SecureMetricsAddress == "" {
		return metrics, nil
	}
	authorizer, err := process.NewAuthorizer(a.REST)
	if err != nil {
		return nil, err
	}
	listener, err := process.Listen(a.SecureMetricsAddress)
	if err != nil {
		return nil, err
	}
	listener = tls.NewListener(listener, certs.HTTP1(certs.TLSConfig(a.source.GetCertificate)))
	parts.Run(func(ctx context.Context) error {
		return process.Serve(ctx, listener, authorizer.Protect(process.MetricsHandler(metrics)))
	})
	return nil, nil
}

// Ready is nil when reviews can be answered: the port is open since Prepare.
func (a *Admission) Ready() error { return a.server.readiness.Ready(a.server.certificates) }

// Run answers reviews until ctx ends, and keeps the certificate current until the
// last one is answered.
func (a *Admission) Run(ctx context.Context) error {
	current, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	parts := process.NewParts(ctx)
	parts.Run(func(ctx context.Context) error {
		defer stop()
		return a.server.serve(ctx, a.Listener)
	})
	parts.Run(func(context.Context) error { return a.source.Run(current) })
	if a.Register {
		parts.Run(func(ctx context.Context) error {
			if err := a.register(ctx); err != nil {
				return err
			}
			<-ctx.Done() // a part that ends ends the others
			return nil
		})
	}
	return parts.Wait()
}
