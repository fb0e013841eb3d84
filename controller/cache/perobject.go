package cache

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// PerObject is what a controller keeps of each object from sync to sync; a restart
// loses it. The zero value is empty. Its methods may be called from anywhere; a value
// itself belongs to the sync of its object.
type PerObject[T any] struct {
	mu     sync.Mutex
	values map[types.NamespacedName]objectValue[T]
}

type objectValue[T any] struct {
	uid   types.UID
	value *T
}

// Get returns the value of an object, which is a zero value at first. An object
// that was deleted and made again is another one.
func (p *PerObject[T]) Get(key types.NamespacedName, uid types.UID) *T {
	p.mu.Lock()
	defer p.mu.Unlock()
	known, ok := p.values[key]
	if !ok || known.uid != uid {
		if p.values == nil {
			p.values = map[types.NamespacedName]objectValue[T]{}
		}
		known = objectValue[T]{uid: uid, value: new(T)}
		p.values[key] = known
	}
	return known.value
}

// Forget drops the value of an object that is gone.
func (p *PerObject[T]) Forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.values, key)
}

// Clear drops all values.
func (p *PerObject[T]) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.values = nil
}

// All returns the values, in the order of their objects' names.
func (p *PerObject[T]) All() []*T {
	p.mu.Lock()
	defer p.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(p.values), func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	out := make([]*T, 0, len(keys))
	for _, key := range keys {
		out = append(out, p.values[key].value)
	}
	return out
}
