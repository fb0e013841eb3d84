package appset

import (
	"context"
	"errors"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"

	"tkestack.io/tapp/controller/cache"
	"tkestack.io/tapp/controller/loop"
	"tkestack.io/tapp/crd/client"
	"tkestack.io/tapp/crd/workload/v1beta1"
	plan "tkestack.io/tapp/plan/appset"
)

// byCluster indexes AppSets by the clusters that they concern.
const byCluster = "cluster"

// byAppSet indexes revisions by the UID of their AppSet, and Confirmations by its name.
const byAppSet = "appset"

// Stores that the guard of an AppSet waits for.
const (
	storeAppSets    = "appsets"
	storeTombstones = "tombstones"
	storeRevisions  = "revisions"
)

func (c *Controller) makeInformers() error {
	var err error
	if c.appSets, err = client.NewAppSetInformer(c.Watching.AppSets, c.Namespace, cache.Witness(slim, c.Incoming, func() toolscache.Store { return c.appSets.GetStore() })); err != nil {
		return err
	}
	if err := c.appSets.AddIndexers(toolscache.Indexers{byCluster: indexByCluster}); err != nil {
		return err
	}
	configMaps := c.Watching.ConfigMaps.ConfigMaps(c.Tombstones)
	tombstones := cache.Source{Client: c.Watching.ConfigMaps, Label: v1beta1.LabelTombstone, Watches: configMaps.Watch}
	tombstones.Lists = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return configMaps.List(ctx, o)
	}
	if c.tombstones, err = cache.NewInformer(tombstones, &corev1.ConfigMap{}, cache.Trim); err != nil {
		return err
	}
	revisions := c.Watching.Apps.ControllerRevisions(c.Namespace)
	if c.revisions, err = cache.NewInformer(cache.Source{
		Client: c.Watching.Apps, Label: v1beta1.LabelAppSetUID, Index: toolscache.Indexers{byAppSet: indexByAppSetUID},
		Lists:   func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return revisions.List(ctx, o) },
		Watches: revisions.Watch,
	}, &appsv1.ControllerRevision{}, cache.Trim); err != nil {
		return err
	}
	if c.confirmations, err = client.NewConfirmationInformer(c.Watching.Confirmations, c.Namespace, cache.Trim); err != nil {
		return err
	}
	if err := c.confirmations.AddIndexers(toolscache.Indexers{byAppSet: indexByAppSet}); err != nil {
		return err
	}
	c.informers = cache.Informers{c.appSets, c.tombstones, c.revisions, c.confirmations}
	c.observer.Stores = cache.Stores{storeAppSets: c.appSets.GetStore(), storeTombstones: c.tombstones.GetStore(), storeRevisions: c.revisions.GetStore()}
	return errors.Join(
		cache.Handle(c.revisions, func(n toolscache.ObjectName) { c.enqueueRevision(n) }),
		cache.Handle(c.confirmations, func(n toolscache.ObjectName) { c.enqueueConfirmation(n) }),
		cache.Handle(c.appSets, func(n toolscache.ObjectName) { c.loop.Enqueue(loop.Key{Namespace: n.Namespace, Name: n.Name}) }),
		cache.Handle(c.tombstones, func(toolscache.ObjectName) { c.enqueueBuried() }),
	)
}

// enqueueRevision enqueues the AppSet whose record it is.
func (c *Controller) enqueueRevision(n toolscache.ObjectName) {
	if name, ok := strings.CutSuffix(n.Name, v1beta1.RecordSuffix); ok {
		c.loop.Enqueue(loop.Key{Namespace: n.Namespace, Name: name})
	}
}

// enqueueConfirmation enqueues the AppSet whose gate a Confirmation is for: its name begins
// with that of the AppSet.
func (c *Controller) enqueueConfirmation(n toolscache.ObjectName) {
	if at := strings.LastIndex(n.Name, "-"); at > 0 {
		c.loop.Enqueue(loop.Key{Namespace: n.Namespace, Name: n.Name[:at]})
	}
}

func indexByCluster(object any) ([]string, error) {
	a, ok := object.(*v1beta1.AppSet)
	if !ok {
		return nil, nil
	}
	return plan.Concerned(a), nil
}

// memberChanged enqueues the AppSets that concern a cluster, and the parts that were given up.
func (c *Controller) memberChanged(name string) {
	concerned, err := c.appSets.GetTypedIndexer().ByTypedIndex(byCluster, name)
	if err != nil {
		return // New has added this index
	}
	for _, a := range concerned {
		c.loop.Enqueue(loop.Key{Namespace: a.Namespace, Name: a.Name})
	}
	c.enqueueBuried()
}

func (c *Controller) partChanged(_, namespace, name string) {
	if c.Namespace != "" && namespace != c.Namespace {
		return
	}
	key := loop.Key{Namespace: namespace, Name: name}
	c.parts.add(key)
	c.loop.Enqueue(key)
}

func (c *Controller) enqueueBuried() {
	for _, t := range c.allTombstones() {
		c.loop.Enqueue(t.AppSet)
	}
}

// seed are the names that a run starts with: those of AppSets, of parts whose AppSet may
// be gone, and of parts that were given up.
func (c *Controller) seed() []loop.Key {
	out := append(cache.Keys(c.appSets), c.parts.all()...)
	for _, t := range c.allTombstones() {
		out = append(out, t.AppSet)
	}
	return out
}

// names is a set of them. The zero value is empty.
type names struct {
	mu  sync.Mutex
	set map[loop.Key]bool
}

func (n *names) add(key loop.Key) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.set == nil {
		n.set = map[loop.Key]bool{}
	}
	n.set[key] = true
}

func (n *names) remove(key loop.Key) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.set, key)
}

func (n *names) all() []loop.Key {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := make([]loop.Key, 0, len(n.set))
	for key := range n.set {
		out = append(out, key)
	}
	return out
}
