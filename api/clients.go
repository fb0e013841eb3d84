package api

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"tkestack.io/tapp/api/access"
	"tkestack.io/tapp/api/live"
	appv1 "tkestack.io/tapp/crd/app/v1"
	"tkestack.io/tapp/crd/client"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/ids"
	plan "tkestack.io/tapp/plan/tapp"
)

// clients of the API server.
type clients struct {
	tapps client.Interface
	apps  client.AppsGetter
	// appSets of a hub.
	appSets client.AppSetsGetter
	core    corev1client.CoreV1Interface
	// kube reads ControllerRevisions, ReplicaSets and Deployments.
	kube appsv1client.AppsV1Interface
}

func connect(config *rest.Config) (*clients, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = -1, -1 // callers are limited, and the API server limits us
	c := &clients{}
	var err error
	if c.tapps, err = client.New(config); err != nil {
		return nil, fmt.Errorf("making a client of TApps: %w", err)
	}
	if c.apps, err = client.NewApps(config); err != nil {
		return nil, fmt.Errorf("making a client of Apps: %w", err)
	}
	if c.appSets, err = client.NewAppSets(config); err != nil {
		return nil, fmt.Errorf("making a client of AppSets: %w", err)
	}
	if c.core, err = corev1client.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("making a client of the core API: %w", err)
	}
	if c.kube, err = appsv1client.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("making a client of apps/v1: %w", err)
	}
	return c, nil
}

// version asks the API server for its own, which every caller may.
func (c *clients) version(ctx context.Context) error {
	return c.core.RESTClient().Get().AbsPath("/version").Do(ctx).Error()
}

// The resources that are watched while somebody asks about them.
const (
	tapps   live.Resource = "tapps"
	apps    live.Resource = "apps"
	appSets live.Resource = "appsets"
	pods    live.Resource = "pods"   // of TApps
	claims  live.Resource = "claims" // of TApps
)

// byStem indexes pods and claims by namespace and name without the instance id.
const byStem = "stem"

// source of a feed.
func (a *API) source(key live.FeedKey) (live.Source, error) {
	ns := key.Namespace
	s := live.Source{Transform: trim, Index: toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc}}
	switch key.Resource {
	case tapps:
		c := a.clients.tapps.TApps(ns)
		s.Client, s.Example, s.Watches = c, &tappv1.TApp{}, c.Watch
		s.Lists = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return c.List(ctx, o) }
	case apps:
		c := a.clients.apps.Apps(ns)
		s.Client, s.Example, s.Watches = c, &appv1.App{}, c.Watch
		s.Lists = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return c.List(ctx, o) }
	case appSets:
		c := a.clients.appSets.AppSets(ns)
		s.Client, s.Example, s.Watches = c, &v1beta1.AppSet{}, c.Watch
		s.Lists = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return c.List(ctx, o) }
	case pods:
		c := a.clients.core.Pods(ns)
		s.Client, s.Example, s.Watches, s.Label = a.clients.core, &corev1.Pod{}, c.Watch, tappv1.LabelInstanceID
		s.Lists = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return c.List(ctx, o) }
		s.Index = toolscache.Indexers{byStem: indexByStem}
	case claims:
		c := a.clients.core.PersistentVolumeClaims(ns)
		s.Client, s.Example, s.Watches, s.Label = a.clients.core, &corev1.PersistentVolumeClaim{}, c.Watch, tappv1.LabelInstanceID
		s.Lists = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return c.List(ctx, o) }
	default:
		return s, fmt.Errorf("there is no watch of %s", key.Resource)
	}
	return s, nil
}

// trim drops the bookkeeping of apply, which is not shown and often half of the bytes.
func trim(object any) (any, error) {
	m, err := meta.Accessor(object)
	if err != nil {
		return object, nil // a tombstone
	}
	m.SetManagedFields(nil)
	delete(m.GetAnnotations(), corev1.LastAppliedConfigAnnotation)
	return object, nil
}

func indexByStem(object any) ([]string, error) {
	m, err := meta.Accessor(object)
	if err != nil {
		return nil, err
	}
	if s, ok := stem(m.GetName()); ok {
		return []string{m.GetNamespace() + "/" + s}, nil
	}
	return nil, nil
}

// stem is a name without the instance id at its end.
func stem(name string) (string, bool) {
	at := strings.LastIndexByte(name, '-')
	if at < 1 {
		return "", false
	}
	_, ok := ids.Parse(name[at+1:])
	return name[:at], ok
}

// keepPolicy is for how long the published policy is not read again.
const keepPolicy = time.Minute

// policies is the policy of the controller, as far as it is known.
type policies struct {
	mu   sync.Mutex
	read time.Time
	now  plan.Policy
}

// policy is what the controller published, or its defaults.
func (a *API) policy(ctx context.Context) plan.Policy {
	p := &a.policies
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.read.IsZero() && time.Since(p.read) < keepPolicy {
		return p.now
	}
	p.read = time.Now()
	p.now = plan.Policy{DeletePodAfterAppFinish: true, NodeLostAfter: 5 * time.Minute, Resize: true}
	if a.ControllerNamespace == "" {
		return p.now
	}
	ctx, cancel := context.WithTimeout(ctx, access.ReviewTimeout)
	defer cancel()
	object, err := a.clients.core.ConfigMaps(a.ControllerNamespace).Get(ctx, tappv1.PolicyConfigMap, metav1.GetOptions{})
	if err != nil {
		return p.now
	}
	if published, err := policyOf(object); err == nil {
		p.now = published
	}
	return p.now
}

// revisionsOf a TApp, read live: they are large, and seldom asked for.
func (c *clients) revisionsOf(ctx context.Context, t *tappv1.TApp) ([]appsv1.ControllerRevision, error) {
	list, err := c.kube.ControllerRevisions(t.Namespace).List(ctx, metav1.ListOptions{LabelSelector: tappv1.LabelTApp + "=" + t.Name})
	if err != nil {
		return nil, fmt.Errorf("listing revisions: %w", err)
	}
	return list.Items, nil
}
