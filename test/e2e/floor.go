//go:build cluster

package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/cluster"
)

// rollout watches the pods of a namespace with one TApp: how few were available
// at any moment, and in which order they began to change.
type rollout struct {
	ns string

	mu        sync.Mutex
	available map[string]bool
	fewest    int
	when      string
	started   []int // ids, in the order of their first change of image or deletion
	seen      map[int]bool
}

// watchRollout begins with the pods as they are now.
func watchRollout(t *testing.T, ns string) *rollout {
	t.Helper()
	r := &rollout{ns: ns, available: map[string]bool{}, seen: map[int]bool{}}
	for name, p := range pods(t, ns) {
		r.available[name] = isAvailable(p)
	}
	r.fewest = r.count()
	t.Cleanup(suite.feed.follow(r.observe))
	return r
}

func (r *rollout) observe(s step) {
	p := s.pod()
	if p.Namespace != r.ns {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.available[p.Name] = s.New != nil && isAvailable(s.New)
	if n := r.count(); n < r.fewest {
		r.fewest, r.when = n, cluster.PodLine(p)
	}
	if s.Old == nil || s.New == nil || s.New.UID != s.Old.UID {
		return
	}
	began := s.New.DeletionTimestamp != nil
	for _, c := range s.New.Spec.Containers {
		began = began || image(s.Old, c.Name) != c.Image
	}
	if id, err := strconv.Atoi(p.Labels[tappv1.LabelInstanceID]); began && err == nil && !r.seen[id] {
		r.seen[id] = true
		r.started = append(r.started, id)
	}
}

func (r *rollout) count() int {
	n := 0
	for _, a := range r.available {
		if a {
			n++
		}
	}
	return n
}

// neverBelow is S2.
func (r *rollout) neverBelow(t *testing.T, floor int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fewest < floor {
		t.Errorf("S2: only %d instances were available, and at least %d should have been: %s", r.fewest, floor, r.when)
	}
}

// reached fails when the budget was not used: an update that is slower than it
// may be is a fault too.
func (r *rollout) reached(t *testing.T, floor int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fewest > floor {
		t.Errorf("never fewer than %d instances were available, although the budget allows %d", r.fewest, floor)
	}
}

// ascending checks the order in which the instances began to change. Those that a
// budget lets begin together may do so in any order.
func (r *rollout) ascending(t *testing.T, budget int, want ...int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if sorted := slices.Sorted(slices.Values(r.started)); !slices.Equal(sorted, want) {
		t.Errorf("the instances %v changed, want %v", sorted, want)
		return
	}
	for at, id := range r.started {
		place := slices.Index(want, id)
		if d := at - place; d >= budget || -d >= budget {
			t.Errorf("the instances changed in the order %v, want %v but for %d at a time", r.started, want, budget)
			return
		}
	}
}

func (r *rollout) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprintf("fewest available %d (%s), order %v", r.fewest, r.when, r.started)
}

// isAvailable is what users may count on: ready, and not about to go or change.
func isAvailable(p *corev1.Pod) bool {
	return isReady(p) && p.DeletionTimestamp == nil && (!hasGate(p) || condition(p, tappv1.GateInPlaceUpdate) == corev1.ConditionTrue)
}
