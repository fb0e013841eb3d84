package tapp

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

func newStores() stores {
	store := func() cache.Store { return cache.NewStore(cache.MetaNamespaceKeyFunc) }
	s := stores{tapps: store(), pods: store(), claims: store(), revisions: store()}
	s.tapps.Bookmark("100")
	s.pods.Bookmark("100")
	s.claims.Bookmark("100")
	s.revisions.Bookmark("100")
	return s
}

func TestGuardWaitsForEachResource(t *testing.T) {
	for name, c := range map[string]struct {
		wrote func(*guard)
		store func(stores) cache.Store
	}{
		"tapp":     {func(g *guard) { g.wroteTApp("120") }, func(s stores) cache.Store { return s.tapps }},
		"pod":      {func(g *guard) { g.wrotePod("120") }, func(s stores) cache.Store { return s.pods }},
		"revision": {func(g *guard) { g.wroteRevision("120") }, func(s stores) cache.Store { return s.revisions }},
		"claim":    {func(g *guard) { g.wroteClaim("120") }, func(s stores) cache.Store { return s.claims }},
	} {
		t.Run(name, func(t *testing.T) {
			s, now := newStores(), time.Now()
			var g guard
			if v := g.check(s, "ns", now); v != (verdict{}) {
				t.Fatalf("nothing was written: %+v", v)
			}
			c.wrote(&g)
			g.wrotePod("90") // older than what the store has seen
			if v := g.check(s, "ns", now); v.live || v.wait != patience {
				t.Fatalf("the store is behind: %+v, want to wait for %v", v, patience)
			}
			c.store(s).Bookmark("119")
			if v := g.check(s, "ns", now.Add(time.Second)); v.live || v.wait != patience-time.Second {
				t.Fatalf("the store is still behind: %+v, want to wait for the rest", v)
			}
			c.store(s).Bookmark("120")
			if v := g.check(s, "ns", now.Add(2*time.Second)); v != (verdict{}) {
				t.Fatalf("the store has caught up: %+v", v)
			}
		})
	}
}

func TestGuardNeverWaitsForEver(t *testing.T) {
	s, now := newStores(), time.Now()
	var g guard
	g.wrotePod("120")
	var live []time.Duration
	for second := range 100 {
		at := now.Add(time.Duration(second) * time.Second)
		if v := g.check(s, "ns", at); v.live {
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
	if v := g.check(s, "ns", now); v != (verdict{}) {
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
				_ = s.pods.Add(c.now)
			}
			var g guard
			g.deletedPod(deletion{name: "a-0", uid: "u0"}) // is gone
			g.deletedPod(deletion{name: "a-1", uid: "u1", force: c.force})
			if v := g.check(s, "ns", time.Now()); (v.wait > 0) != c.waits {
				t.Errorf("%+v, want waiting: %v", v, c.waits)
			}
		})
	}
}

func TestInventoryReached(t *testing.T) {
	live := &inventory{version: "200", objects: map[string]string{"ns/a-0": "150", "ns/a-1": "160"}}
	for name, c := range map[string]struct {
		pods     []any
		bookmark string
		want     bool
	}{
		"current":                    {[]any{somePod("a-0", "u", "150"), somePod("a-1", "u", "160")}, "", true},
		"one is newer":               {[]any{somePod("a-0", "u", "150"), somePod("a-1", "u", "170")}, "", true},
		"one is older":               {[]any{somePod("a-0", "u", "150"), somePod("a-1", "u", "159")}, "", false},
		"one is missing":             {[]any{somePod("a-0", "u", "150")}, "", false},
		"one should be gone":         {[]any{somePod("a-0", "u", "150"), somePod("a-1", "u", "160"), somePod("a-2", "u", "140")}, "", false},
		"one came since":             {[]any{somePod("a-1", "u", "160"), somePod("a-2", "u", "210"), somePod("a-0", "u", "150")}, "", true},
		"the store is past the list": {nil, "201", true},
	} {
		t.Run(name, func(t *testing.T) {
			store := newStores().pods
			for _, p := range c.pods {
				_ = store.Add(p)
			}
			if c.bookmark != "" {
				store.Bookmark(c.bookmark)
			}
			if got := live.reached(store); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
