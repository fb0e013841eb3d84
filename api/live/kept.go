package live

import (
	"sync"
	"time"
)

// kept are things that several use at a time, each by its key. One goes on for a while after its
// last user has left.
type kept[K comparable, V interface{ end() }] struct {
	linger time.Duration

	mu  sync.Mutex
	all map[K]*holding[V]
}

// holding of one thing.
type holding[V any] struct {
	value V
	users int
	timer *time.Timer // of the while; nil: there are users
}

// acquire a thing, which begin makes if there is none; others is how many others there are. The
// function that is returned ends the use.
func (k *kept[K, V]) acquire(key K, begin func(others int) (V, error)) (value V, leave func(), err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	one := k.all[key]
	if one == nil {
		if value, err = begin(len(k.all)); err != nil {
			return value, nil, err
		}
		one = &holding[V]{value: value}
		k.all[key] = one
	}
	one.users++
	one.stop()
	return one.value, sync.OnceFunc(func() { k.leave(key, one) }), nil
}

func (k *kept[K, V]) leave(key K, one *holding[V]) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if one.users--; one.users == 0 {
		one.timer = time.AfterFunc(k.linger, func() { k.drop(key, one) })
	}
}

// drop a thing that nobody uses. Somebody may have come by now.
func (k *kept[K, V]) drop(key K, one *holding[V]) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if one.users == 0 && k.all[key] == one {
		delete(k.all, key)
		one.value.end()
	}
}

// close ends all things.
func (k *kept[K, V]) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, one := range k.all {
		delete(k.all, key)
		one.stop()
		one.value.end()
	}
}

// each thing.
func (k *kept[K, V]) each(f func(V)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, one := range k.all {
		f(one.value)
	}
}

func (k *kept[K, V]) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.all)
}

// stop the timer.
func (h *holding[V]) stop() {
	if h.timer != nil {
		h.timer.Stop()
		h.timer = nil
	}
}
