package shell

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Memories are what a controller remembers of each object from sync to sync, which
// is lost at every restart. The zero value remembers nothing. Its methods may be
// called from anywhere; a memory itself belongs to the sync of its object.
type Memories[T any] struct {
	mu sync.Mutex
	of map[types.NamespacedName]memory[T]
}

type memory[T any] struct {
	uid  types.UID
	what *T
}

// Get returns the memory of an object, which is a zero value at first. An object
// that was deleted and made again is another one.
func (m *Memories[T]) Get(key types.NamespacedName, uid types.UID) *T {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.of[key]
	if !ok || known.uid != uid {
		if m.of == nil {
			m.of = map[types.NamespacedName]memory[T]{}
		}
		known = memory[T]{uid: uid, what: new(T)}
		m.of[key] = known
	}
	return known.what
}

// Forget drops the memory of an object that is gone.
func (m *Memories[T]) Forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.of, key)
}

// Clear drops all memories.
func (m *Memories[T]) Clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of = nil
}

// All returns the memories there are, in the order of their objects' names.
func (m *Memories[T]) All() []*T {
	m.mu.Lock()
	defer m.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(m.of), func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	out := make([]*T, 0, len(keys))
	for _, key := range keys {
		out = append(out, m.of[key].what)
	}
	return out
}
