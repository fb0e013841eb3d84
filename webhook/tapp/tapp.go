// Package tapp completes TApps and judges them before the API server stores them,
// and tells whoever changes one what will happen.
//
//	Mutate            writes the defaults, the selector and the template hashes
//	Validate rules    what a TApp alone can tell: one rule, one file (rule_*.go)
//	         dry runs whether the cluster takes its pods
//	         overlap  whether another TApp selects its pods too
//	         preview  what the update will do to the instances, by the planner
//
// Each rule has a name that is a label of metrics, and sentences that say what to
// do. Nothing here is needed for safety: the controller is correct without it.
package tapp

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"tkestack.io/tapp/crd/client"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/spread"
)

// Options of New.
type Options struct {
	// API is how the API server is asked.
	API *rest.Config
	// DryRuns is how many pods of one review are tried at a time.
	DryRuns int
	// DefaultSpread is how the pods of TApps are spread that do not say it.
	DefaultSpread tappv1.DefaultTopologySpread
	// Reads from caches. Those that are nil are made live.
	Reads Reads
	// Registry takes the metric of the dry runs.
	Registry prometheus.Registerer
}

// New makes a Validator. Nothing is asked of the API server before a review.
func New(o Options) (*Validator, error) {
	api := rest.CopyConfig(o.API)
	api.WarningHandlerWithContext = collectWarnings{}
	core, err := corev1client.NewForConfig(api)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	tapps, err := client.New(api)
	if err != nil {
		return nil, fmt.Errorf("making a client of TApps: %w", err)
	}
	if o.Reads.Pods == nil {
		o.Reads.Pods = livePods(core)
	}
	if o.Reads.TApps == nil {
		o.Reads.TApps = liveTApps(tapps)
	}
	if o.Reads.Resize == nil {
		o.Reads.Resize = liveResize(core.RESTClient())
	}
	if o.Reads.Zones == nil {
		o.Reads.Zones = liveZones(core.RESTClient(), time.Now)
	}
	spreads := func(ctx context.Context) spread.Policy {
		return spread.Policy{Default: o.DefaultSpread, Zones: o.Reads.Zones(ctx)}
	}
	return &Validator{dryRuns: dryRunner{pods: core, spreads: spreads, concurrency: o.DryRuns, turns: newTurns(), results: newDryRunResults(o.Registry)}, reads: o.Reads}, nil
}

// newDryRunResults registers the metric of the dry runs.
func newDryRunResults(registry prometheus.Registerer) *prometheus.CounterVec {
	return promauto.With(registry).NewCounterVec(prometheus.CounterOpts{Name: "tapp_admission_dry_runs_total",
		Help: "Pods that were tried by a dry-run create, by what the API server said: accepted, invalid, forbidden, or error; untried: too many of one review or one namespace."},
		[]string{"result"})
}
