package controller

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"tkestack.io/tapp/controller/advdeployment"
	"tkestack.io/tapp/controller/release"
	"tkestack.io/tapp/crd/bases"
	"tkestack.io/tapp/crd/client"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/helm"
	"tkestack.io/tapp/helm/source"
)

// advDeploymentCRDs are its own, and that of the children which no cluster has by itself.
func advDeploymentCRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return bases.CRDs(v1beta1.KindAdvDeployment, v1beta1.KindConfirmation, tappv1.Kind)
}

// advDeployments is the controller of AdvDeployments.
type advDeployments struct {
	*advdeployment.Controller
	heldKind
}

// Run looks after AdvDeployments until ctx ends.
func (a *advDeployments) Run(ctx, work context.Context) { a.runHeld(ctx, work, a.Controller.Run) }

func newAdvDeployments(s setup) (kindController, error) {
	c := s.config
	held, s, err := s.newHold(v1beta1.SchemeGroupVersion.WithKind(v1beta1.KindAdvDeployment), "advdeployments", func(o metav1.Object) any { return &o.(*v1beta1.AdvDeployment).Spec })
	if err != nil {
		return nil, err
	}
	requests, err := newAdvDeploymentClients(s.api.requests)
	if err != nil {
		return nil, err
	}
	watches, err := newAdvDeploymentClients(s.api.watches)
	if err != nil {
		return nil, err
	}
	events, err := corev1client.NewForConfig(s.api.events)
	if err != nil {
		return nil, fmt.Errorf("making a client of events: %w", err)
	}
	releases, err := newReleases(c, s.api.requests)
	if err != nil {
		return nil, err
	}
	controller, err := advdeployment.New(advdeployment.Options{
		Clients: requests, Releases: releases, Watching: watches, Events: events,
		Namespace: c.Namespace, Workers: c.Workers,
		Metrics: advdeployment.NewMetrics(c.Registry), Queue: s.queue, Host: s.host, Clock: c.Clock, Incoming: held.hold.Incoming,
	})
	if err != nil {
		return nil, err
	}
	held.hold.Objects = controller.Objects
	return &advDeployments{controller, held}, nil
}

// fetcher gets the archives of charts from where they are.
func (c *ChartConfig) fetcher() func(ctx context.Context, url, version string) ([]byte, error) {
	if c.Fetch != nil {
		return c.Fetch
	}
	from := source.New(source.Options{Repositories: c.Repositories, AllowURLs: c.AllowURLs, AllowPrivate: c.AllowPrivate})
	return func(ctx context.Context, url, version string) ([]byte, error) {
		chart, err := from.Resolve(ctx, source.Reference{URL: url, Version: version})
		if err != nil {
			return nil, err
		}
		return chart.Archive, nil
	}
}

// newReleases makes what writes charts, by the rights of a ServiceAccount of each
// namespace. All of them share the rate limit of requests.
func newReleases(c *Config, api *rest.Config) (*release.Operator, error) {
	kinds, err := discovery.NewDiscoveryClientForConfig(api)
	if err != nil {
		return nil, fmt.Errorf("making a client of the cluster's kinds: %w", err)
	}
	charts, err := corev1client.NewForConfig(api)
	if err != nil {
		return nil, fmt.Errorf("making a client of charts: %w", err)
	}
	return release.New(release.Options{
		As: func(namespace, account string) (*release.Access, error) {
			return newAccess(with(api, func(r *rest.Config) { r.Impersonate.UserName = "system:serviceaccount:" + namespace + ":" + account }))
		},
		Account: c.Charts.Account, Anywhere: c.Charts.Anywhere, Charts: charts.Secrets(c.Charts.Namespace),
		Fetch: c.Charts.fetcher(), Renderer: helm.NewRenderer(helm.Limits{}), Kinds: release.NewKinds(kinds, c.Clock), Clock: c.Clock,
	}), nil
}

func newAccess(api *rest.Config) (a *release.Access, err error) {
	a = &release.Access{}
	if a.Objects, err = dynamic.NewForConfig(api); err != nil {
		return nil, fmt.Errorf("making a client of charts' objects: %w", err)
	}
	if a.Secrets, err = corev1client.NewForConfig(api); err != nil {
		return nil, fmt.Errorf("making a client of releases: %w", err)
	}
	if a.Heads, err = metadata.NewForConfig(api); err != nil {
		return nil, fmt.Errorf("making a client of releases: %w", err)
	}
	return a, nil
}

func newAdvDeploymentClients(api *rest.Config) (c advdeployment.Clients, err error) {
	if c.AdvDeployments, err = client.NewAdvDeployments(api); err != nil {
		return c, fmt.Errorf("making a client of AdvDeployments: %w", err)
	}
	if c.Confirmations, err = client.NewConfirmations(api); err != nil {
		return c, fmt.Errorf("making a client of Confirmations: %w", err)
	}
	if c.Apps, err = appsv1client.NewForConfig(api); err != nil {
		return c, fmt.Errorf("making a client of revisions: %w", err)
	}
	if c.Children, err = dynamic.NewForConfig(api); err != nil {
		return c, fmt.Errorf("making a client of their children: %w", err)
	}
	return c, nil
}
