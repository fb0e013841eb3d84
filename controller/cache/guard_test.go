package cache

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
)

// newStores of two resources of one cluster, and one of another.
func newStores() Stores {
	s := Stores{}
	for _, name := range []string{"owners", "pods", "member/pods"} {
		s[name] = toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
		s[name].Bookmark("100")
	}
	return s
}

func key(name string) types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: name} }

func somePod(name, uid, version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(uid), ResourceVersion: version}}
}

func TestGuardWaitsForEachResource(t *testing.T) {
	for name := range newStores() {
		t.Run(name, func(t *testing.T) {
			s, now := newStores(), time.Now()
			var g Guard
			if v := g.check(s, now); v != (verdict{}) {
				t.Fatalf("nothing was written: %+v", v)
			}
			g.Wrote(name, "120")
			g.Wrote("pods", "90") // older than what the store has seen
			if v := g.check(s, now); v.live || v.wait != patience {
				t.Fatalf("the store is behind: %+v, want to wait for %v", v, patience)
			}
			s[name].Bookmark("119")
			if v := g.check(s, now.Add(time.Second)); v.live || v.wait != patience-time.Second {
				t.Fatalf("the store is still behind: %+v, want to wait for the rest", v)
			}
			s[name].Bookmark("120")
			if v := g.check(s, now.Add(2*time.Second)); v != (verdict{}) {
				t.Fatalf("the store has caught up: %+v", v)
			}
		})
	}
}

// TestGuardOfAStoreThatIsGone: nothing is waited for of a cluster that is not watched any more.
func TestGuardOfAStoreThatIsGone(t *testing.T) {
	s := newStores()
	var g Guard
	g.Wrote("member/pods", "120")
	g.Deleted(Deletion{Store: "member/pods", Key: key("a-1"), UID: "u1"})
	delete(s, "member/pods")
	if v := g.check(s, time.Now()); v != (verdict{}) {
		t.Errorf("%+v, want nothing to wait for", v)
	}
}

func TestGuardNeverWaitsForEver(t *testing.T) {
	s, now := newStores(), time.Now()
	var g Guard
	g.Wrote("pods", "120")
	var live []time.Duration
	for second := range 100 {
		at := now.Add(time.Duration(second) * time.Second)
		if v := g.check(s, at); v.live {
			g.looks(at)
			live = append(live, time.Duration(second)*time.Second)
		} else if v.wait <= 0 {
			t.Fatalf("after %d s: neither live nor a time to wait", second)
		}
	}
	// 5 s, then 10, then always 20 s apart.
	want := []time.Duration{5 * time.Second, 15 * time.Second, 35 * time.Second, 55 * time.Second, 75 * time.Second, 95 * time.Second}
	if len(live) != len(want) {
		t.Fatalf("live views after %v, want %v", live, want)
	}
	for n := range want {
		if live[n] != want[n] {
			t.Fatalf("live views after %v, want %v", live, want)
		}
	}
	g.clear()
	if v := g.check(s, now); v != (verdict{}) {
		t.Errorf("after clear: %+v", v)
	}
}

func TestGuardLooksForDeletedPods(t *testing.T) {
	dying := somePod("a-1", "u1", "90")
	dying.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	for name, c := range map[string]struct {
		force bool
		now   any
		waits bool
	}{
		"still there":                    {false, somePod("a-1", "u1", "90"), true},
		"gone":                           {false, nil, false},
		"dying":                          {false, dying, false},
		"replaced":                       {false, somePod("a-1", "u2", "90"), false},
		"dying, but deleted by force":    {true, dying, true},
		"gone after deletion by force":   {true, nil, false},
		"replaced, was deleted by force": {true, somePod("a-1", "u2", "90"), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStores()
			if c.now != nil {
				_ = s["pods"].Add(c.now)
			}
			var g Guard
			g.Deleted(Deletion{Store: "pods", Key: key("a-0"), UID: "u0"}) // is gone
			g.Deleted(Deletion{Store: "pods", Key: key("a-1"), UID: "u1", Force: c.force})
			if v := g.check(s, time.Now()); (v.wait > 0) != c.waits {
				t.Errorf("%+v, want waiting: %v", v, c.waits)
			}
		})
	}
}
