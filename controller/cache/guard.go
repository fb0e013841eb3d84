package cache

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
)

// A plan that is made on stores that lack our own last writes would repeat them:
// drain more instances than the budget allows, or delete an object that has been
// replaced. So an object is planned only when the stores have caught up with what
// was written for it.
//
// An informer's store knows the newest resourceVersion that it has seen, and
// sees the versions of a resource in order. One high-water mark for each store tells
// whether it has seen all writes. A deletion may leave no version; what was deleted is
// looked for by name.
//
// patience is how long the stores may take; after that the object is planned on a
// live view of the cluster. The marks stay, so that the next plan waits again,
// and longer, lest a watch that is stuck turn every sync into a list.
const (
	patience    = 5 * time.Second
	patienceMax = 20 * time.Second
)

// Stores by name: one for each resource of each cluster that a controller writes to.
type Stores map[string]toolscache.Store

// Guard remembers the writes for one object that the stores may lack. The zero value
// has nothing to wait for.
type Guard struct {
	mu      sync.Mutex
	written map[string]string // the newest resourceVersion that we wrote, by store
	deleted []Deletion

	since    time.Time     // when the stores were first found lacking; zero: not yet
	patience time.Duration // this time
}

// Deletion that was asked for.
type Deletion struct {
	Store string
	Key   types.NamespacedName
	UID   types.UID
	// Force is true when the object was being deleted already, so that only its
	// absence shows the effect.
	Force bool
}

// Wrote notes the resourceVersion that a write to a resource resulted in.
func (g *Guard) Wrote(store, version string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !Newer(version, g.written[store]) {
		return
	}
	if g.written == nil {
		g.written = map[string]string{}
	}
	g.written[store] = version
}

// Deleted notes a deletion.
func (g *Guard) Deleted(d Deletion) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.deleted = append(g.deleted, d)
}

// Written returns the marks, by store.
func (g *Guard) Written() map[string]string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.written)
}

// Pending returns the deletions that no store has shown yet.
func (g *Guard) Pending() []Deletion {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]Deletion(nil), g.deleted...)
}

// verdict of the guard.
type verdict struct {
	// live: patience is at its end, plan on a live view; otherwise wait if that is not
	// zero: the stores lack a write, and an event or the end of patience will show.
	live bool
	wait time.Duration
}

// check says what to plan on. It costs the same for any number of objects, but for
// each deletion once.
func (g *Guard) check(s Stores, now time.Time) verdict {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.seen(s) {
		g.forget()
		return verdict{}
	}
	if g.since.IsZero() {
		g.since = now
		g.patience = max(g.patience, patience)
	}
	if left := g.patience - now.Sub(g.since); left > 0 {
		return verdict{wait: left}
	}
	return verdict{live: true}
}

// looks notes that a live view is being made: patience begins anew, and is longer.
func (g *Guard) looks(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.since = now
	g.patience = min(2*g.patience, patienceMax)
}

// clear is for when a live view showed that the stores lack nothing after all.
func (g *Guard) clear() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forget()
}

func (g *Guard) forget() {
	g.written, g.deleted = nil, nil
	g.since, g.patience = time.Time{}, 0
}

func (g *Guard) seen(s Stores) bool {
	for name, version := range g.written {
		if store := s[name]; store != nil && Newer(version, store.LastStoreSyncResourceVersion()) {
			return false
		}
	}
	for n := len(g.deleted) - 1; n >= 0; n-- {
		if store := s[g.deleted[n].Store]; store != nil && !g.deleted[n].seen(store) {
			return false
		}
		g.deleted = g.deleted[:n]
	}
	return true
}

// seen says whether the store shows the effect of the deletion.
func (d Deletion) seen(store toolscache.Store) bool {
	stored, exists, _ := store.GetByKey(d.Key.String())
	if !exists {
		return true
	}
	object, err := meta.Accessor(stored)
	return err != nil || object.GetUID() != d.UID || !d.Force && object.GetDeletionTimestamp() != nil
}
