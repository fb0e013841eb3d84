package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/urfave/cli/v2"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"tkestack.io/tapp/api"
	"tkestack.io/tapp/api/access"
	"tkestack.io/tapp/certs"
	"tkestack.io/tapp/process"
)

// Config of `tapp api`. Flags fill it.
type Config struct {
	Kubeconfig, Master string
	ListenAddress      string
	// CertFile, KeyFile and CAFile are those of certs.FileOptions; without the first two a
	// certificate is made that clients cannot verify.
	CertFile, KeyFile, CAFile string
	// ClientCAFile has the CAs of callers' certificates; empty: the API server's.
	ClientCAFile string
	// Namespace and ControllerNamespace are those of Options.
	Namespace, ControllerNamespace string
	MetricsAddress                 string
	// Clusters say how the clusters of AppSets are reached.
	Clusters api.MembersOptions
	Limits   api.Limits
	Version  string

	// REST replaces Kubeconfig and Master if not nil, and Listener replaces ListenAddress.
	REST     *rest.Config
	Listener net.Listener
	// Page is that of Options.
	Page http.Handler
	// Registry takes the metrics; nil: a new one.
	Registry *prometheus.Registry
}

// Defaults of the configuration, which those of the flags are.
func Defaults() Config {
	c := Config{ListenAddress: ":8443", MetricsAddress: ":8080", ControllerNamespace: "tapp-system"}
	c.Limits.SetDefaults()
	return c
}

// Flags of the configuration.
func (c *Config) Flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "kubeconfig", Usage: "`path` of a kubeconfig; by default KUBECONFIG, the user's own, or the cluster that this runs in", Destination: &c.Kubeconfig},
		&cli.StringFlag{Name: "master", Usage: "`address` of the API server, instead of the kubeconfig's", Destination: &c.Master},
		&cli.StringFlag{Name: "listen-address", Usage: "`address` of the API, which is served by HTTPS", Destination: &c.ListenAddress, Value: c.ListenAddress},
		&cli.StringFlag{Name: "tlsCertFile", Usage: "`path` of the certificate to serve with; it is read again when it changes. Without one, a self-signed one is made for each run", Destination: &c.CertFile},
		&cli.StringFlag{Name: "tlsKeyFile", Usage: "`path` of its key", Destination: &c.KeyFile},
		&cli.StringFlag{Name: "tlsCAFile", Usage: "`path` of the CA that signed it, if that shall be checked at the start", Destination: &c.CAFile},
		&cli.StringFlag{Name: "client-ca-file", Usage: "`path` of the CA of callers' client certificates; by default the API server's own", Destination: &c.ClientCAFile},
		&cli.StringFlag{Name: "namespace", Usage: "`namespace` whose objects alone are shown; empty: those of all", Destination: &c.Namespace},
		&cli.StringFlag{Name: "controller-namespace", Usage: "`namespace` of the controller, which publishes its policy there", Destination: &c.ControllerNamespace, Value: c.ControllerNamespace},
		&cli.StringFlag{Name: "cluster-namespace", Usage: "`namespace` in which the clusters of AppSets are registered; empty: pods and logs of other clusters are not shown", Destination: &c.Clusters.Namespace, Value: c.Clusters.Namespace},
		&cli.StringFlag{Name: "fleet-id", Usage: "`id` of this hub on what it writes into its clusters; by default the UID of its namespace kube-system", Destination: &c.Clusters.FleetID},
		&cli.StringFlag{Name: "self-cluster", Usage: "`name` of the hub as one of its own clusters; by default it is none", Destination: &c.Clusters.SelfCluster},
		&cli.BoolFlag{Name: "allow-local-clusters", Usage: "let clusters have loopback and link-local addresses", Destination: &c.Clusters.AllowLocal},
		&cli.StringFlag{Name: "metrics-address", Usage: "`address` of /metrics, /healthz and /readyz; empty serves none", Destination: &c.MetricsAddress, Value: c.MetricsAddress},
		&cli.IntFlag{Name: "max-streams", Usage: "`number` of streams that may be open", Destination: &c.Limits.Streams, Value: c.Limits.Streams},
		&cli.IntFlag{Name: "max-streams-per-user", Usage: "`number` of streams that one caller may have open", Destination: &c.Limits.StreamsPerUser, Value: c.Limits.StreamsPerUser},
		&cli.IntFlag{Name: "requests-per-second", Usage: "`number` of requests of one caller in a second; twice as many at once", Destination: &c.Limits.RequestsPerSecond, Value: c.Limits.RequestsPerSecond},
		&cli.IntFlag{Name: "failures-per-minute", Usage: "`number` of wrong tokens that an address may send before it has to wait", Destination: &c.Limits.FailuresPerMinute, Value: c.Limits.FailuresPerMinute},
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
	reject((c.CertFile == "") != (c.KeyFile == ""), "--tlsCertFile and --tlsKeyFile belong together; give both, or none")
	reject(c.CAFile != "" && c.CertFile == "", "--tlsCAFile says what signed --tlsCertFile, which is missing")
	reject(c.Limits.Streams < 1, "--max-streams is %d; give a number above 0", c.Limits.Streams)
	reject(c.Limits.StreamsPerUser < 1, "--max-streams-per-user is %d; give a number above 0", c.Limits.StreamsPerUser)
	reject(c.Limits.RequestsPerSecond < 1, "--requests-per-second is %d; give a number above 0", c.Limits.RequestsPerSecond)
	reject(c.Limits.FailuresPerMinute < 1, "--failures-per-minute is %d; give a number above 0", c.Limits.FailuresPerMinute)
	return errors.Join(errs...)
}

// Command is `tapp api`. page answers what is not below /api; it may be nil.
func Command(version string, page http.Handler) *cli.Command {
	c := Defaults()
	c.Version, c.Page = version, page
	return process.Command(process.Spec{
		Name: "api", Usage: "serve what TApps, Apps and AppSets do over HTTP, read only", Version: version,
		Flags: c.Flags(),
		Run:   func(ctx context.Context) error { return Run(ctx, c) },
	})
}

// Run serves the API, metrics and health until ctx ends, and returns nil then.
func Run(ctx context.Context, c Config) error {
	if c.Registry == nil {
		c.Registry = prometheus.NewRegistry()
	}
	process.NewMetrics(c.Registry, c.Version)
	s, err := NewServer(ctx, c)
	if err != nil {
		return err
	}
	defer s.Close()
	parts := process.NewParts(ctx)
	if err := parts.Serve(c.MetricsAddress, process.Endpoints(c.Registry, process.Health{Ready: s.Ready})); err != nil {
		return err
	}
	parts.Run(s.Run)
	return parts.Wait()
}

// Server serves an API by HTTPS. Close ends what it watches, also where Run was not called.
type Server struct {
	api      *api.API
	server   *server
	source   *certs.Source
	members  *api.Members
	listener net.Listener
}

// NewServer listens for requests, which Run answers. The context has the logger.
func NewServer(ctx context.Context, c Config) (*Server, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	config, err := process.FindAPIServer(c.REST, c.Kubeconfig, c.Master)
	if err != nil {
		return nil, err
	}
	process.Introduce(config, c.Version, "api")
	reviews, err := access.NewReviews(config, c.Limits.Keep)
	if err != nil {
		return nil, err
	}
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of the core API: %w", err)
	}
	out := &Server{members: c.members(config), listener: c.Listener}
	if out.source, err = c.certificates(); err != nil {
		return nil, err
	}
	options := api.Options{Config: config, Authenticator: reviews, Authorizer: reviews, Namespace: c.Namespace, ControllerNamespace: c.ControllerNamespace,
		Members: out.members, Page: c.Page, Limits: c.Limits}
	if c.Registry != nil {
		options.Registry = c.Registry
	}
	if out.listener == nil {
		if out.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", c.ListenAddress); err != nil {
			return nil, fmt.Errorf("listening for requests of the API: %w", err)
		}
	}
	if out.api, err = api.New(ctx, options); err != nil {
		return nil, errors.Join(err, out.listener.Close())
	}
	out.server = &server{api: out.api, certificates: out.source, clients: &clientCAs{file: c.ClientCAFile, core: core}}
	return out, nil
}

// Ready is nil when requests can be answered.
func (s *Server) Ready() error { return s.server.readiness.Ready(s.source) }

// Close ends all streams and watches.
func (s *Server) Close() { s.api.Close() }

// Run answers requests until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	parts := process.NewParts(ctx)
	if s.members != nil {
		parts.Run(s.members.Run)
	}
	parts.Run(s.source.Run)
	parts.Run(s.server.clients.run)
	parts.Run(func(ctx context.Context) error { return s.server.serve(ctx, s.listener) })
	return parts.Wait()
}

// members of the fleet; nil: they are not read.
func (c *Config) members(config *rest.Config) *api.Members {
	if c.Clusters.Namespace == "" {
		return nil
	}
	return api.NewMembers(config, c.Clusters)
}

// certificates to serve with.
func (c *Config) certificates() (*certs.Source, error) {
	if c.CertFile != "" {
		return certs.Files(certs.FileOptions{CertFile: c.CertFile, KeyFile: c.KeyFile, CAFile: c.CAFile})
	}
	return certs.Ephemeral("localhost", "127.0.0.1", "::1"), nil
}
