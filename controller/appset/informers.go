package appset

import (
	"context"
	"errors"
	"sync"

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

// Stores that the guard of an AppSet waits for.
const (
	storeAppSets    = "appsets"
	storeTombstones = "tombstones"
)

func (c *Controller) makeInformers() error {
	var err error
	if c.appSets, err = client.NewAppSetInformer(c.Watching.AppSets, c.Namespace, cache.Trim); err != nil {
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
	c.informers = cache.Informers{c.appSets, c.tombstones}
	c.observer.Stores = cache.Stores{storeAppSets: c.appSets.GetStore(), storeTombstones: c.tombstones.GetStore()}
	return errors.Join(
		cache.Handle(c.appSets, func(n toolscache.ObjectName) { c.loop.Enqueue(loop.Key{Namespace: n.Namespace, Name: n.Name}) }),
		cache.Handle(c.tombstones, func(toolscache.ObjectName) { c.enqueueBuried() }),
	)
}

func indexByCluster(object any) ([]string, error) {
	a, ok := object.(*v1beta1.AppSet)
	if !ok {
		return nil, nil
	}
	return plan.Concerned(a), nil
}

// memberChanged has all AppSets of a cluster looked at, and the parts that were given up.
func (c *Controller) memberChanged(name string) {
	concerned, err := c.appSets.GetTypedIndexer().ByTypedIndex(byCluster, name)
	if err != nil {
		return // there is the index
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

// seed are the names that a run starts with: those of AppSets, of parts that may have
// none any more, and of parts that were given up.
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
