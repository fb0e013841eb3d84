package release

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"
	"k8s.io/utils/clock"

	"tkestack.io/tapp/helm"
)

// rediscovery is how often at most the kinds of a cluster are read anew because one was
// missing.
const rediscovery = 5 * time.Second

// Kinds are the kinds of a cluster, as it was asked for them last.
type Kinds struct {
	discovery discovery.CachedDiscoveryInterface
	mapper    meta.ResettableRESTMapper
	clock     clock.PassiveClock

	mu    sync.Mutex
	asked time.Time
}

// NewKinds asks nothing of the API server yet. The clock is the real one if nil.
func NewKinds(d discovery.DiscoveryInterface, c clock.PassiveClock) *Kinds {
	if c == nil {
		c = clock.RealClock{}
	}
	cached := memory.NewMemCacheClient(d)
	return &Kinds{discovery: cached, mapper: restmapper.NewDeferredDiscoveryRESTMapper(cached), clock: c}
}

// find the resource of a kind, and whether its objects have namespaces. Not known: the
// cluster has none.
func (k *Kinds) find(gvk schema.GroupVersionKind) (resource schema.GroupVersionResource, namespaced, known bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	mapping, err := k.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) && k.clock.Since(k.asked) > rediscovery {
		k.asked = k.clock.Now()
		k.mapper.Reset()
		mapping, err = k.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	switch {
	case meta.IsNoMatchError(err):
		return resource, false, false, nil
	case err != nil:
		return resource, false, false, fmt.Errorf("reading the kinds of the cluster: %w", err)
	}
	return mapping.Resource, mapping.Scope.Name() == meta.RESTScopeNameNamespace, true, nil
}

// capabilities of the cluster, as charts see them.
func (k *Kinds) capabilities(context.Context) (version string, apis []string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return helm.Capabilities(k.discovery)
}
