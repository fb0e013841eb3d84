package tapp

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"tkestack.io/tapp/controller/shell"
)

// A plan that is made on caches that lack our own last writes would repeat them:
// drain more instances than the budget allows, or delete a pod that has been
// replaced. So a TApp is planned only when the caches have caught up with what
// was written for it.
//
// An informer's store knows the newest resourceVersion that it has seen, and
// sees the versions of a resource in order, so that one high-water mark for each
// resource tells whether it has seen all writes. Only a pod that vanished at once
// has left no version; such pods are looked for by name.
//
// patience is how long the caches may take; after that the TApp is planned on a
// live view of the cluster. The mark stays, so that the next plan waits again,
// and longer, lest a watch that is stuck turn every sync into a list. For the same
// reason only one TApp at a time is looked at live: when a watch is behind, it is so
// for all of them, and each list holds the instances of the whole namespace.
const (
	patience    = 5 * time.Second
	patienceMax = 20 * time.Second
	// lookAgain is when to ask again whether it is a TApp's turn to be looked at.
	lookAgain = time.Second
)

// guard remembers the writes for one TApp that the caches may lack.
type guard struct {
	mu      sync.Mutex
	tapp    string // the newest resourceVersion of the TApp that we wrote
	pod     string // of any of its pods
	claim   string // of any of its claims
	history string // of any of its revisions
	deleted []deletion

	since    time.Time     // when the caches were first found lacking; zero: not yet
	patience time.Duration // this time
}

// deletion of a pod that was asked for.
type deletion struct {
	name string
	uid  types.UID
	// force is true when the pod was being deleted already, so that only its
	// absence shows the effect.
	force bool
}

func (g *guard) wroteTApp(version string)     { g.raise(&g.tapp, version) }
func (g *guard) wrotePod(version string)      { g.raise(&g.pod, version) }
func (g *guard) wroteClaim(version string)    { g.raise(&g.claim, version) }
func (g *guard) wroteRevision(version string) { g.raise(&g.history, version) }

func (g *guard) raise(mark *string, version string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if shell.Newer(version, *mark) {
		*mark = version
	}
}

func (g *guard) deletedPod(d deletion) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.deleted = append(g.deleted, d)
}

// stores of the caches.
type stores struct{ tapps, pods, claims, revisions cache.Store }

// verdict of the guard.
type verdict struct {
	// live: patience is at its end, plan on a live view; otherwise wait if that is not
	// zero: the caches lack a write, and an event or the end of patience will show.
	live bool
	wait time.Duration
}

// check says what to plan on. It costs the same for any number of pods, but for
// each deletion once.
func (g *guard) check(s stores, namespace string, now time.Time) verdict {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.seen(s, namespace) {
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
func (g *guard) looks(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.since = now
	g.patience = min(2*g.patience, patienceMax)
}

// clear is for when a live view showed that the caches lack nothing after all.
func (g *guard) clear() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forget()
}

func (g *guard) forget() {
	g.tapp, g.pod, g.claim, g.history, g.deleted = "", "", "", "", nil
	g.since, g.patience = time.Time{}, 0
}

func (g *guard) seen(s stores, namespace string) bool {
	if shell.Newer(g.tapp, s.tapps.LastStoreSyncResourceVersion()) ||
		shell.Newer(g.pod, s.pods.LastStoreSyncResourceVersion()) ||
		shell.Newer(g.claim, s.claims.LastStoreSyncResourceVersion()) ||
		shell.Newer(g.history, s.revisions.LastStoreSyncResourceVersion()) {
		return false
	}
	for n := len(g.deleted) - 1; n >= 0; n-- {
		if !g.deleted[n].seen(s.pods, namespace) {
			return false
		}
		g.deleted = g.deleted[:n]
	}
	return true
}

// seen says whether the store shows the effect of the deletion.
func (d deletion) seen(pods cache.Store, namespace string) bool {
	object, exists, _ := pods.GetByKey(namespace + "/" + d.name)
	if !exists {
		return true
	}
	pod, err := meta.Accessor(object)
	return err != nil || pod.GetUID() != d.uid || !d.force && pod.GetDeletionTimestamp() != nil
}
