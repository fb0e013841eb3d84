package controller

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"tkestack.io/tapp/controller/app"
	appv1 "tkestack.io/tapp/crd/app/v1"
	"tkestack.io/tapp/crd/client"
)

// apps is the controller of Apps, and what it offers to the webhooks.
type apps struct {
	*app.Controller
	heldKind
}

// Run looks after Apps until ctx ends.
func (a *apps) Run(ctx, work context.Context) { a.runHeld(ctx, work, a.Controller.Run) }

func newApps(s setup) (kindController, error) {
	c := s.config
	held, s, err := s.newHold(appv1.GroupVersionKind(), "apps", func(o metav1.Object) any { return &o.(*appv1.App).Spec })
	if err != nil {
		return nil, err
	}
	requests, err := newAppClients(s.api.requests)
	if err != nil {
		return nil, err
	}
	watches, err := newAppClients(s.api.watches)
	if err != nil {
		return nil, err
	}
	events, err := corev1client.NewForConfig(s.api.events)
	if err != nil {
		return nil, fmt.Errorf("making a client of events: %w", err)
	}
	controller, err := app.New(app.Options{
		Clients: requests, Watching: watches, Events: events,
		Namespace: c.Namespace, Workers: c.Workers,
		Metrics: app.NewMetrics(c.Registry), Queue: s.queue, Host: s.host, Clock: c.Clock, Incoming: held.hold.Incoming,
	})
	if err != nil {
		return nil, err
	}
	held.hold.Objects = controller.Objects
	return &apps{controller, held}, nil
}

func newAppClients(api *rest.Config) (c app.Clients, err error) {
	if c.Apps, err = client.NewApps(api); err != nil {
		return c, fmt.Errorf("making a client of Apps: %w", err)
	}
	if c.Deployments, err = appsv1client.NewForConfig(api); err != nil {
		return c, fmt.Errorf("making a client of Deployments: %w", err)
	}
	if c.Services, err = corev1client.NewForConfig(api); err != nil {
		return c, fmt.Errorf("making a client of Services: %w", err)
	}
	return c, nil
}

// AppsNaming are the Apps in the cache that name a child of this kind and name. They
// are shared: copy before writing to one.
func (a *apps) AppsNaming(_ context.Context, kind, namespace, name string) ([]*appv1.App, error) {
	if !a.HasSynced() {
		return nil, errNotSynced
	}
	return a.Naming(kind, namespace, name)
}
