package controller

import (
	"context"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"tkestack.io/tapp/controller/loop"
	appv1 "tkestack.io/tapp/crd/app/v1"
	"tkestack.io/tapp/crd/bases"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// Names of the kinds that there are controllers for.
const (
	KindTApp          = "tapp"
	KindApp           = "app"
	KindAppSet        = "appset"
	KindAdvDeployment = "advdeployment"
)

// kind is a row of the table of kinds. Its webhooks are a row of webhook's table, under
// the same name.
type kind struct {
	// name is what --controllers calls it.
	name string
	// chartValues is the path of the chart's values that turn it on; empty: it is always on.
	chartValues string
	// crds are applied by --create-crd.
	crds func() ([]*apiextensionsv1.CustomResourceDefinition, error)
	// newController makes the controller and registers the metrics that it counts. It asks
	// nothing of the API server.
	newController func(setup) (kindController, error)
}

func allKinds() []kind {
	return []kind{
		{name: KindTApp, crds: embedded(tappv1.Kind), newController: newTApps},
		{name: KindApp, chartValues: "controllers.app", crds: embedded(appv1.Kind), newController: newApps},
		{name: KindAppSet, chartValues: "controllers.appset", crds: appSetCRDs, newController: newAppSets},
		{name: KindAdvDeployment, chartValues: "controllers.advdeployment", crds: advDeploymentCRDs, newController: newAdvDeployments},
	}
}

func embedded(name string) func() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return func() ([]*apiextensionsv1.CustomResourceDefinition, error) { return bases.CRDs(name) }
}

// Kinds are the names of all kinds that there are controllers for.
func Kinds() []string { return namesOf(allKinds()) }

func namesOf(kinds []kind) []string {
	var out []string
	for _, k := range kinds {
		out = append(out, k.name)
	}
	return out
}

// enabledKinds are those of --controllers, in the order of the table.
func (c *Config) enabledKinds() []kind {
	return slices.DeleteFunc(slices.Clone(c.kinds), func(k kind) bool { return !slices.Contains(c.Controllers, k.name) })
}

// setup is what the controller of a kind is made with. It makes the clients that it
// needs itself.
type setup struct {
	config *Config
	api    connections
	queue  *loop.Metrics
	// held is 1 for each kind that is held.
	held *prometheus.GaugeVec
	// host names this process in events.
	host string
}

// kindController is the controller of a kind as a replica runs it.
type kindController interface {
	// Collector of metrics that are read from the caches.
	prometheus.Collector
	// Watch fills the caches and keeps them current until ctx ends.
	Watch(ctx context.Context)
	// HasSynced says whether the caches have been filled.
	HasSynced() bool
	// Run works until ctx ends; what is under way then has the context work.
	Run(ctx, work context.Context)
}

// Find returns the controller in a replica that has the methods of T, which are what it
// offers to other parts of the program. There is none if its kind is not enabled.
func Find[T any](r *Replica) (T, bool) {
	for _, c := range r.controllers {
		if found, ok := c.(T); ok {
			return found, true
		}
	}
	var none T
	return none, false
}
