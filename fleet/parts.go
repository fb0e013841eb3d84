package fleet

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"tkestack.io/tapp/controller/cache"
	"tkestack.io/tapp/crd/workload/v1beta1"
)

// parts are the AdvDeployments of one member, as a reflector saw them, and up to when
// that is true. It is far smaller than an informer, and knows the age of what it holds.
type parts struct {
	clock clock.PassiveClock
	// changed is called after each change, without a lock.
	changed func(key types.NamespacedName)
	// listedAnew is called after each list.
	listedAnew func()
	packer     *packer // all members'

	mu      sync.RWMutex
	objects map[types.NamespacedName]part
	// version is the newest that was seen. Versions that do not move prove nothing: a
	// server may send bookmarks and be cut off from what it stores.
	version string
	asOf    time.Time
	listed  bool
	// lists that were begun, and when the last one was: what it says is true of then, however
	// long it takes.
	lists int
	since time.Time
}

type part struct {
	*packed
	// written by us, and not seen yet.
	written bool
	// lists that were begun when it was written.
	lists int
}

func newParts(c clock.PassiveClock, shared *packer, changed func(types.NamespacedName), listedAnew func()) *parts {
	return &parts{clock: c, packer: shared, changed: changed, listedAnew: listedAnew, objects: map[types.NamespacedName]part{}}
}

func keyOf(o *v1beta1.AdvDeployment) types.NamespacedName {
	return types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
}

// Add is called by the reflector, as all methods with a capital are.
func (p *parts) Add(object any) error { return p.Update(object) }

// Update notes an event.
func (p *parts) Update(object any) error {
	o, ok := object.(*v1beta1.AdvDeployment)
	if !ok {
		return nil
	}
	slim := p.packer.pack(o)
	p.mu.Lock()
	p.step(o.ResourceVersion)
	key := keyOf(slim.model) // all parts of a name hold it once
	// What we wrote ourselves is here before its event is.
	have := p.objects[key]
	stale := have.written && cache.Newer(have.unpack().ResourceVersion, o.ResourceVersion)
	if !stale {
		p.objects[key] = part{packed: slim}
	}
	p.mu.Unlock()
	if !stale {
		p.changed(key)
	}
	return nil
}

// Delete notes an event.
func (p *parts) Delete(object any) error {
	o, ok := object.(*v1beta1.AdvDeployment)
	if !ok {
		return nil
	}
	p.mu.Lock()
	p.step(o.ResourceVersion)
	key := keyOf(o)
	have := p.objects[key]
	stale := have.written && cache.Newer(have.unpack().ResourceVersion, o.ResourceVersion)
	if !stale {
		delete(p.objects, key)
	}
	p.mu.Unlock()
	if !stale {
		p.changed(key)
	}
	return nil
}

// Bookmark notes that the watch got as far as this version.
func (p *parts) Bookmark(version string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.step(version)
	return nil
}

// Replace takes a consistent list.
func (p *parts) Replace(list []any, version string) error {
	p.mu.Lock()
	before := p.objects
	p.objects = make(map[types.NamespacedName]part, len(list))
	p.version, p.asOf, p.listed = version, p.since, true
	var different []types.NamespacedName
	for _, object := range list {
		slim, ok := p.pack(object).(*packed)
		if !ok {
			continue
		}
		key := keyOf(slim.model)
		p.objects[key] = part{packed: slim}
		if had, ok := before[key]; !ok || !sameVersion(had.unpack(), slim.unpack()) {
			different = append(different, key)
		}
	}
	for key, had := range before {
		// A list that began after a write, and is older, is of a store that was restored.
		if had.written && had.lists == p.lists && cache.Newer(had.unpack().ResourceVersion, version) {
			p.objects[key] = had // written since the list
		} else if _, still := p.objects[key]; !still {
			different = append(different, key)
		}
	}
	p.mu.Unlock()
	for _, key := range different {
		p.changed(key)
	}
	p.listedAnew()
	return nil
}

func sameVersion(a, b *v1beta1.AdvDeployment) bool {
	return a.UID == b.UID && a.ResourceVersion == b.ResourceVersion
}

// Transformer packs what a reflector gathers before it hands on a list: many members are listed at a time.
func (p *parts) Transformer() toolscache.TransformFunc {
	return func(object any) (any, error) { return p.pack(object), nil }
}

// pack a part; anything else stays as it is, and so does what is packed: client-go hands on each object of a list twice.
func (p *parts) pack(object any) any {
	if o, ok := object.(*v1beta1.AdvDeployment); ok {
		return p.packer.pack(o)
	}
	return object
}

// Resync does nothing: nothing is handed on late.
func (p *parts) Resync() error { return nil }

// step notes evidence that the watch is alive.
func (p *parts) step(version string) {
	if cache.Newer(version, p.version) {
		p.version, p.asOf = version, p.clock.Now()
	}
}

// listing is called when a list begins, and begun says how many did.
func (p *parts) listing() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lists++
	p.since = p.clock.Now()
}

func (p *parts) begun() int {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.lists
}

// wrote shows what a write came to before its event does, and returns it as the cache has it. lists is what begun
// said before the write: what was written before a list is not shown after it, as the store
// may have been restored in between.
func (p *parts) wrote(o *v1beta1.AdvDeployment, lists int) *v1beta1.AdvDeployment {
	slim := p.packer.pack(o)
	p.mu.Lock()
	key := keyOf(slim.model)
	have, exists := p.objects[key]
	// A version that the watch has passed is told by its events, a deletion too.
	news := p.listed && lists == p.lists && cache.Newer(o.ResourceVersion, p.version) && (!exists || cache.Newer(o.ResourceVersion, have.unpack().ResourceVersion))
	if news {
		p.objects[key] = part{packed: slim, written: true, lists: lists}
	}
	p.mu.Unlock()
	if news {
		p.changed(key)
	}
	return slim.unpack()
}

// get a part; nil: there is none.
func (p *parts) get(key types.NamespacedName) *packed {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.objects[key].packed
}

func (p *parts) all() []*v1beta1.AdvDeployment {
	p.mu.RLock()
	defer p.mu.RUnlock()
	out := make([]*v1beta1.AdvDeployment, 0, len(p.objects))
	for _, one := range p.objects {
		out = append(out, one.unpack())
	}
	return out
}

func (p *parts) count() int {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return len(p.objects)
}

func (p *parts) keys() []types.NamespacedName {
	p.mu.RLock()
	defer p.mu.RUnlock()
	out := make([]types.NamespacedName, 0, len(p.objects))
	for key := range p.objects {
		out = append(out, key)
	}
	return out
}

// truth is up to when the parts are known to be true, and whether they were ever listed.
func (p *parts) truth() (asOf time.Time, listed bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.asOf, p.listed
}
