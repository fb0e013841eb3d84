package controller

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"tkestack.io/tapp/controller/appset"
	"tkestack.io/tapp/controller/events"
	"tkestack.io/tapp/crd/bases"
	"tkestack.io/tapp/crd/client"
	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/fleet"
	"tkestack.io/tapp/fleet/kubeconfig"
)

// appSetCRDs are those of the hub.
func appSetCRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return bases.CRDs(v1beta1.KindAppSet, v1beta1.KindConfirmation)
}

// appSets is the controller of AppSets with its clusters.
type appSets struct {
	*appset.Controller
	heldKind
	clusters *clusters
}

func newAppSets(s setup) (kindController, error) {
	c := s.config
	held, s, err := s.newHold(v1beta1.SchemeGroupVersion.WithKind(v1beta1.KindAppSet), "appsets", func(o metav1.Object) any { return &o.(*v1beta1.AppSet).Spec })
	if err != nil {
		return nil, err
	}
	requests, err := newAppSetClients(s.api.requests)
	if err != nil {
		return nil, err
	}
	watches, err := newAppSetClients(s.api.watches)
	if err != nil {
		return nil, err
	}
	core, err := corev1client.NewForConfig(s.api.events)
	if err != nil {
		return nil, fmt.Errorf("making a client of events: %w", err)
	}
	namespace := cmp.Or(c.Fleet.ClusterNamespace, c.ownNamespace(), metav1.NamespaceSystem)
	known := &clusters{id: c.Fleet.ID, leases: !c.Fleet.NoMemberLease, namespaces: requests.core}
	known.Options = fleet.Options{
		HubClient: requests.core, HubWatches: watches.core, Namespace: namespace,
		Events:      events.NewRecorder(events.Options{Client: core, Component: v1beta1.Component, Host: s.host, Clock: c.Clock, Contain: s.queue.Container("events")}),
		SelfCluster: c.Fleet.SelfCluster, SelfConfig: s.api.requests, UserAgent: s.api.requests.UserAgent,
		ChartNamespace: c.Charts.Namespace,
		AllowLocal:     c.Fleet.AllowLocal, Leading: known.leading.Load, Contain: s.queue.Container("clusters"), Metrics: fleet.NewMetrics(c.Registry), Clock: c.Clock, Network: c.Fleet.Network,
	}
	if file := c.Fleet.ProvidersFile; file != "" {
		if known.Providers, err = readProviders(file); err != nil {
			return nil, fmt.Errorf("--cluster-profile-providers: %w", err)
		}
		inventory, err := dynamic.NewForConfig(s.api.watches)
		if err != nil {
			return nil, fmt.Errorf("making a client of ClusterProfiles: %w", err)
		}
		known.Profiles = inventory.Resource(v1beta1.ClusterProfiles()).Namespace(namespace)
	}
	if c.Checks != nil {
		known.Checks = c.Checks
	}
	heads, err := metadata.NewForConfig(s.api.requests)
	if err != nil {
		return nil, fmt.Errorf("making a client of charts: %w", err)
	}
	controller, err := appset.New(appset.Options{
		Fetch:      c.Charts.fetcher(),
		SweepAge:   c.Charts.SweepAge,
		Charts:     requests.core.Secrets(c.Charts.Namespace),
		ChartHeads: heads.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(c.Charts.Namespace),
		Clients:    requests.Clients, Watching: watches.Clients, Events: core,
		Fleet: known, FleetID: known.ID, Namespace: c.Namespace, Tombstones: namespace, Workers: c.Workers,
		Metrics: appset.NewMetrics(c.Registry), Queue: s.queue, Host: s.host, Clock: c.Clock, Incoming: held.hold.Incoming,
	})
	if err != nil {
		return nil, err
	}
	held.hold.Objects = controller.Objects
	return &appSets{Controller: controller, heldKind: held, clusters: known}, nil
}

func readProviders(file string) (kubeconfig.Providers, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the file: %w", err)
	}
	return kubeconfig.ParseProviders(text)
}

type appSetClients struct {
	appset.Clients
	core corev1client.CoreV1Interface
}

func newAppSetClients(api *rest.Config) (c appSetClients, err error) {
	if c.AppSets, err = client.NewAppSets(api); err != nil {
		return c, fmt.Errorf("making a client of AppSets: %w", err)
	}
	if c.core, err = corev1client.NewForConfig(api); err != nil {
		return c, fmt.Errorf("making a client of ConfigMaps: %w", err)
	}
	c.ConfigMaps = c.core
	if c.Apps, err = appsv1client.NewForConfig(api); err != nil {
		return c, fmt.Errorf("making a client of ControllerRevisions: %w", err)
	}
	if c.Confirmations, err = client.NewConfirmations(api); err != nil {
		return c, fmt.Errorf("making a client of Confirmations: %w", err)
	}
	return c, nil
}

// Watch fills the caches of the hub and of its clusters.
func (a *appSets) Watch(ctx context.Context) {
	var watching sync.WaitGroup
	watching.Go(func() { a.clusters.run(ctx) })
	a.Controller.Watch(ctx)
	watching.Wait()
}

// Run looks after AppSets until ctx ends, and tells of their clusters.
func (a *appSets) Run(ctx, work context.Context) { a.runHeld(ctx, work, a.run) }

func (a *appSets) run(ctx, work context.Context) {
	a.clusters.leading.Store(true)
	defer a.clusters.leading.Store(false)
	var telling sync.WaitGroup
	telling.Go(func() { a.clusters.Events.Run(ctx) })
	a.Controller.Run(ctx, work)
	telling.Wait()
}

// Describe implements prometheus.Collector.
func (a *appSets) Describe(out chan<- *prometheus.Desc) {
	a.Controller.Describe(out)
	fleet.Describe(out)
}

// Collect implements prometheus.Collector.
func (a *appSets) Collect(out chan<- prometheus.Metric) {
	a.Controller.Collect(out)
	if known := a.clusters.known(); known != nil {
		known.Collect(out)
	}
}
