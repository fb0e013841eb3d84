// Package controller is `tapp controller`: it makes the clients, wins the
// election, and runs the kinds.
package controller

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/fleet"
	"tkestack.io/tapp/process"
)

// Config of Run. Flags fill it; tests do so directly.
type Config struct {
	// Kubeconfig and Master say where the API server is. Both empty: the
	// KUBECONFIG variable, the user's kubeconfig, or the cluster that this runs in.
	Kubeconfig string
	Master     string
	// Controllers are the names of the kinds to look after, some of Kinds.
	Controllers []string
	// CreateCRD applies the CustomResourceDefinitions of these kinds at the start.
	CreateCRD bool
	// DeletePodAfterAppFinish keeps ended pods until all instances of a TApp have
	// ended, and then deletes them; false deletes each at once.
	DeletePodAfterAppFinish bool
	// NodeLostAfter is how long a node has to be not ready to count as lost.
	NodeLostAfter time.Duration
	// AcceptedSchemas are digests of served schemas that are fine, whatever fields they lost.
	AcceptedSchemas []string
	// DefaultTopologySpread is how new pods of TApps are spread that do not say it: None or
	// System.
	DefaultTopologySpread string
	// SchemaInterval is how often the served schemas of the kinds are compared with what they were; 0: never, and
	// nothing is held by what they lose.
	SchemaInterval time.Duration
	// TrackingLabel is the label by which Argo CD tracks objects; empty: nobody does.
	TrackingLabel string
	// KubeAPIQPS and KubeAPIBurst limit the requests of the controller.
	KubeAPIQPS   float64
	KubeAPIBurst int
	// Workers is how many objects of a kind are worked on at a time.
	Workers int
	// NodesPerSync is how many nodes are read at most to decide about one TApp. Of more,
	// each has its turn.
	NodesPerSync int
	// Namespace to look after; empty: all.
	Namespace string
	// Fleet are the clusters of AppSets.
	Fleet FleetConfig
	// Charts says by whose rights charts are applied, and where they are.
	Charts ChartConfig
	// MetricsAddress is where metrics and health are served; empty: nowhere.
	MetricsAddress string
	Election       Election
	// Version of the program, for the user agent.
	Version string
	// Grace is how long writes under way may take to finish at the end.
	Grace time.Duration

	// REST replaces Kubeconfig and Master if not nil.
	REST *rest.Config
	// Listener replaces MetricsAddress if not nil.
	Listener net.Listener
	// Registry takes the metrics; nil: one of its own.
	Registry Registry
	// Checks of /live and /ready, which the kinds add to and take from; nil: none.
	Checks *process.Checks
	// Clock of the kinds; nil: the real one.
	Clock clock.WithTicker
	// Wrap is put around the transport of all API requests if not nil.
	Wrap func(http.RoundTripper) http.RoundTripper

	// kinds are those to choose from.
	kinds []kind
}

// FleetConfig says where the clusters of AppSets are.
type FleetConfig struct {
	// ClusterNamespace is where clusters are registered, and where is written what was
	// given up; empty: the namespace that this runs in.
	ClusterNamespace string
	// ID marks the parts of this hub in its clusters; empty: the UID of its namespace
	// kube-system.
	ID string
	// SelfCluster is the hub's own name as a cluster; empty: it is none.
	SelfCluster string
	// NoMemberLease: the hub has no Lease in its clusters, by which a second hub of the same
	// id would see that it must not write there.
	NoMemberLease bool
	// ProvidersFile names the programs that make credentials for the clusters of
	// ClusterProfiles, in the form of KEP-5339; empty: ClusterProfiles are not used.
	ProvidersFile string
	// AllowLocal lets clusters have loopback and link-local addresses.
	AllowLocal bool
	// Network reaches the clusters; nil: the real one.
	Network fleet.Network
}

// ChartConfig says by whose rights the charts of AdvDeployments are applied, and where
// their archives are.
type ChartConfig struct {
	// Account is the name of the ServiceAccount of each namespace that is impersonated.
	Account string
	// Anywhere lets charts have objects of the cluster, and of other namespaces.
	Anywhere bool
	// Namespace has the Secrets with the archives of charts.
	Namespace string
	// Repositories is a repositories file in Helm's format; empty: there are none.
	Repositories string
	// AllowURLs allows charts of hosts that no repository names, and AllowPrivate addresses
	// that are private, loopback or link-local.
	AllowURLs, AllowPrivate bool
	// Fetch gets the archive of a chart from its place; nil: repositories and registries are
	// asked.
	Fetch func(ctx context.Context, url, version string) ([]byte, error)
	// SweepAge is how old an archive has to be that is dropped since nothing uses it; 0: an
	// hour.
	SweepAge time.Duration
}

// Registry takes metrics, and hands them to who serves them.
type Registry interface {
	prometheus.Registerer
	prometheus.Gatherer
}

// Election of the one replica that works.
type Election struct {
	// Enabled is false for a single replica that need not ask.
	Enabled bool
	// LeaseDuration is how long the others wait for a leader that is silent.
	LeaseDuration time.Duration
	// RenewDeadline is after how long without success a leader gives up.
	RenewDeadline time.Duration
	// RetryPeriod is how long to wait between tries. A replica that does not lead
	// waits 1 to 2.2 times as long, so that it may see the last renewal that much too
	// late, and its expiry too: a leader that dies is replaced after LeaseDuration
	// and at most 4.4 periods, one that stops after at most 2.2.
	RetryPeriod time.Duration
	// Namespace and Name of the Lease; no namespace: the one that this runs in.
	Namespace string
	Name      string
}

// Defaults of the configuration, which those of the flags are.
func Defaults() Config {
	return Config{
		Controllers:             []string{KindTApp},
		CreateCRD:               true,
		DeletePodAfterAppFinish: true,
		NodeLostAfter:           5 * time.Minute,
		DefaultTopologySpread:   string(tappv1.SystemTopologySpread),
		TrackingLabel:           tappv1.DefaultTrackingLabel,
		KubeAPIQPS:              2000,
		KubeAPIBurst:            2500,
		Workers:                 20,
		NodesPerSync:            200,
		SchemaInterval:          time.Minute,
		MetricsAddress:          ":8080",
		Charts:                  ChartConfig{Account: "tapp-release", Namespace: v1beta1.DefaultChartNamespace},
		Grace:                   20 * time.Second,
		kinds:                   allKinds(),
		Election: Election{
			Enabled:       true,
			LeaseDuration: 15 * time.Second,
			RenewDeadline: 10 * time.Second,
			RetryPeriod:   time.Second,
			Name:          "tapp-controller",
		},
	}
}

// ownNamespace is that of the Lease, or of the pod that this runs in; empty: neither is
// known.
func (c *Config) ownNamespace() string {
	if c.Election.Namespace != "" {
		return c.Election.Namespace
	}
	own, err := process.PodNamespace()
	if err != nil {
		return ""
	}
	return own
}

func (c *Config) validate() error {
	var errs []error
	reject := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	errs = append(errs, process.Names(c.Controllers).Among("--controllers", namesOf(c.kinds)...))
	reject(c.Workers < 1, "--worker is %d; at least 1 TApp has to be worked on at a time", c.Workers)
	reject(c.KubeAPIQPS <= 0, "--kube-api-qps is %v; give a number above 0", c.KubeAPIQPS)
	reject(c.KubeAPIBurst < 1, "--kube-api-burst is %d; give a number above 0", c.KubeAPIBurst)
	reject(c.NodeLostAfter <= 0, "--node-lost-after is %v; give a duration above 0, such as 5m", c.NodeLostAfter)
	if why := validation.IsQualifiedName(c.TrackingLabel); c.TrackingLabel != "" && len(why) > 0 {
		errs = append(errs, fmt.Errorf("--argocd-instance-label is %q, which is no label: %s", c.TrackingLabel, strings.Join(why, "; ")))
	}
	reject(!tappv1.DefaultTopologySpread(c.DefaultTopologySpread).IsKnown(), "--default-topology-spread is %q; give None or System", c.DefaultTopologySpread)
	if why := validation.IsValidLabelValue(c.Fleet.ID); len(why) > 0 {
		errs = append(errs, fmt.Errorf("--fleet-id is %q, which is no label value: %s", c.Fleet.ID, strings.Join(why, "; ")))
	}
	reject(c.Grace < 0, "the grace is %v; give 0 or more", c.Grace)
	if e := c.Election; e.Enabled {
		reject(e.Name == "", "--leader-elect-resource-name is empty; give the Lease a name")
		reject(e.RetryPeriod <= 0, "--leader-elect-retry-period is %v; give a duration above 0", e.RetryPeriod)
		reject(e.RenewDeadline <= e.RetryPeriod*6/5, "--leader-elect-renew-deadline (%v) must be longer than 1.2 times --leader-elect-retry-period (%v), or no retry fits in", e.RenewDeadline, e.RetryPeriod)
		reject(e.LeaseDuration <= e.RenewDeadline, "--leader-elect-lease-duration (%v) must be longer than --leader-elect-renew-deadline (%v), or two replicas could work at a time", e.LeaseDuration, e.RenewDeadline)
		reject(e.LeaseDuration < time.Second, "--leader-elect-lease-duration is %v; Leases count whole seconds", e.LeaseDuration)
	}
	return errors.Join(errs...)
}
