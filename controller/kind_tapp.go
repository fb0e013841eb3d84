package controller

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"tkestack.io/tapp/controller/tapp"
	"tkestack.io/tapp/crd/client"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/spread"
)

// maxActions of a plan is more than is carried out before the next plan anyway, and less
// than makes plans of 10,000 instances large.
const maxActions = 2000

// tapps is the controller of TApps, and what it offers to the webhooks.
type tapps struct {
	*tapp.Controller
	heldKind
	publisher policyPublisher
}

func newTApps(s setup) (kindController, error) {
	c := s.config
	held, s, err := s.newHold(tappv1.GroupVersionKind(), "tapps", func(o metav1.Object) any { return &o.(*tappv1.TApp).Spec })
	if err != nil {
		return nil, err
	}
	requests, err := newTAppClients(s.api.requests)
	if err != nil {
		return nil, err
	}
	watches, err := newTAppClients(s.api.watches)
	if err != nil {
		return nil, err
	}
	events, err := corev1client.NewForConfig(s.api.events)
	if err != nil {
		return nil, fmt.Errorf("making a client of events: %w", err)
	}
	o := tapp.Options{
		TApps: requests.tapps, Core: requests.core, Apps: requests.apps, Events: events,
		Namespace: c.Namespace, Workers: c.Workers, NodesPerSync: c.NodesPerSync,
		Policy: tapp.Policy{Try: true, DeletePodAfterAppFinish: c.DeletePodAfterAppFinish, NodeLostAfter: c.NodeLostAfter, Batch: maxActions,
			Spread: spread.Policy{Default: tappv1.DefaultTopologySpread(c.DefaultTopologySpread)}, Tracking: c.TrackingLabel},
		Metrics: tapp.NewMetrics(c.Registry), Queue: s.queue, Host: s.host, Clock: c.Clock, Incoming: held.hold.Incoming,
	}
	o.Watching.TApps, o.Watching.Core, o.Watching.Apps = watches.tapps, watches.core, watches.apps
	controller, err := tapp.New(o)
	if err != nil {
		return nil, err
	}
	held.hold.Objects = controller.Objects
	return &tapps{Controller: controller, heldKind: held, publisher: policyPublisher{
		core: requests.core, namespace: c.ownNamespace(), contain: s.queue.Container("policy"), policy: tappv1.PublishedPolicy{
			DeletePodAfterAppFinish: c.DeletePodAfterAppFinish, NodeLostAfter: metav1.Duration{Duration: c.NodeLostAfter}, TrackingLabel: c.TrackingLabel,
		},
	}}, nil
}

// Run looks after TApps until ctx ends, and tells by which policy.
func (t *tapps) Run(ctx, work context.Context) { t.runHeld(ctx, work, t.run) }

func (t *tapps) run(ctx, work context.Context) {
	var telling sync.WaitGroup
	telling.Go(func() { t.publisher.publish(ctx) })
	t.Controller.Run(ctx, work)
	telling.Wait()
}

type tappClients struct {
	tapps client.Interface
	core  corev1client.CoreV1Interface
	apps  tapp.Apps
}

func newTAppClients(api *rest.Config) (c tappClients, err error) {
	if c.tapps, err = client.New(api); err != nil {
		return c, fmt.Errorf("making a client of TApps: %w", err)
	}
	if c.core, err = corev1client.NewForConfig(api); err != nil {
		return c, fmt.Errorf("making a client of pods: %w", err)
	}
	if c.apps, err = appsv1client.NewForConfig(api); err != nil {
		return c, fmt.Errorf("making a client of revisions and StatefulSets: %w", err)
	}
	return c, nil
}

// TApps of a namespace from the cache, or of all by an empty one. They are shared:
// copy before writing to one.
func (t *tapps) TApps(_ context.Context, namespace string) ([]*tappv1.TApp, error) {
	if !t.HasSynced() {
		return nil, errNotSynced
	}
	return t.Lister().TApps(namespace).List(labels.Everything())
}

// PodsOf a TApp from the cache: those that it owns, may adopt, or that have the names
// of its instances. They are shared: copy before writing to one.
func (t *tapps) PodsOf(_ context.Context, owner *tappv1.TApp) ([]*corev1.Pod, error) {
	if !t.HasSynced() {
		return nil, errNotSynced
	}
	return t.Pods(owner)
}
