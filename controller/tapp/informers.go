package tapp

import (
	"context"
	"errors"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"

	"tkestack.io/tapp/controller/cache"
	"tkestack.io/tapp/controller/loop"
	"tkestack.io/tapp/crd/client"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// byStem indexes objects by namespace and name without the instance id. A pod's
// name is its identity: under a TApp's stem are the pods that it owns, those that
// it may adopt, and those of others that take its names.
const byStem = "stem"

// byTApp indexes revisions by their namespace and the TApp that their label names.
const byTApp = "tapp"

// Stores that the guard of a TApp waits for.
const (
	storeTApps     = "tapps"
	storePods      = "pods"
	storeClaims    = "claims"
	storeRevisions = "revisions"
)

// makeInformers makes the caches. The API server filters pods and claims by the
// label that all of ours carry: a cluster has many times more of others.
func (c *Controller) makeInformers() error {
	var err error
	if c.tapps, err = client.NewInformer(c.Watching.TApps, c.Namespace, cache.Witness(cache.Trim, c.Incoming, func() toolscache.Store { return c.tapps.GetStore() })); err != nil {
		return err
	}
	c.lister = client.NewLister(c.tapps)
	pods, claims := c.Watching.Core.Pods(c.Namespace), c.Watching.Core.PersistentVolumeClaims(c.Namespace)
	instances := cache.Source{Client: c.Watching.Core, Label: tappv1.LabelInstanceID, Index: toolscache.Indexers{byStem: indexByStem}}
	instances.Watches = pods.Watch
	instances.Lists = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return pods.List(ctx, o) }
	if c.pods, err = cache.NewInformer(instances, &corev1.Pod{}, newCompactor().compact); err != nil {
		return err
	}
	instances.Watches = claims.Watch
	instances.Lists = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return claims.List(ctx, o) }
	if c.claims, err = cache.NewInformer(instances, &corev1.PersistentVolumeClaim{}, cache.Trim); err != nil {
		return err
	}
	revisions := c.Watching.Apps.ControllerRevisions(c.Namespace)
	if c.revisions, err = cache.NewInformer(cache.Source{
		Client: c.Watching.Apps, Label: tappv1.LabelTApp, Index: toolscache.Indexers{byTApp: cache.ByLabel(tappv1.LabelTApp)},
		Lists:   func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return revisions.List(ctx, o) },
		Watches: revisions.Watch,
	}, &appsv1.ControllerRevision{}, withoutData); err != nil {
		return err
	}
	c.Informers = cache.Informers{c.tapps, c.pods, c.claims, c.revisions}
	c.observer.Stores = cache.Stores{
		storeTApps: c.tapps.GetStore(), storePods: c.pods.GetStore(), storeClaims: c.claims.GetStore(), storeRevisions: c.revisions.GetStore(),
	}
	return errors.Join(cache.Handle(c.tapps, c.enqueue), cache.Handle(c.pods, c.enqueuePod), cache.Handle(c.claims, c.enqueueClaim), cache.Handle(c.revisions, c.enqueueRevision))
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
	s := strings.TrimRight(name, "0123456789")
	if len(s) == len(name) || len(s) < 2 || s[len(s)-1] != '-' {
		return "", false
	}
	return s[:len(s)-1], true
}

// enqueue is for events of TApps. Those that our own status writes cause are not
// left out: the planner reads the status, and there are at most two a second.
func (c *Controller) enqueue(n toolscache.ObjectName) {
	c.loop.Enqueue(loop.Key{Namespace: n.Namespace, Name: n.Name})
}

// enqueuePod is for events of pods: of the TApp that has the pod's name among
// those of its instances, whoever owns it.
func (c *Controller) enqueuePod(n toolscache.ObjectName) {
	if s, ok := stem(n.Name); ok {
		c.enqueueKnown(n.Namespace, s)
	}
}

// enqueueClaim is for events of claims, whose names are
// <claim template>-<tapp>-<id>. Either name can have dashes, so that every way
// to split them is tried.
func (c *Controller) enqueueClaim(n toolscache.ObjectName) {
	s, ok := stem(n.Name)
	for ok {
		if _, s, ok = strings.Cut(s, "-"); ok {
			c.enqueueKnown(n.Namespace, s)
		}
	}
}

// enqueueRevision is for events of revisions, whose names are <tapp>-<hash>.
func (c *Controller) enqueueRevision(n toolscache.ObjectName) {
	if at := strings.LastIndexByte(n.Name, '-'); at > 0 {
		c.enqueueKnown(n.Namespace, n.Name[:at])
	}
}

// enqueueKnown enqueues a TApp if there is one. If there is not, the event of its
// creation will.
func (c *Controller) enqueueKnown(namespace, name string) {
	if _, exists, _ := c.tapps.GetStore().GetByKey(namespace + "/" + name); exists {
		c.loop.Enqueue(loop.Key{Namespace: namespace, Name: name})
	}
}
