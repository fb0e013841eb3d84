package cache

import (
	"slices"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// TestPerObject: a memory lasts as long as its object, and no longer.
func TestPerObject(t *testing.T) {
	web, db := types.NamespacedName{Namespace: "ns", Name: "web"}, types.NamespacedName{Namespace: "ns", Name: "db"}
	for name, c := range map[string]struct {
		then func(*PerObject[int])
		// web is what is remembered of it afterwards, all what is of all objects.
		web int
		all []int
	}{
		"nothing happens":            {func(*PerObject[int]) {}, 7, []int{7, 8}},
		"another sync":               {func(m *PerObject[int]) { *m.Get(web, "u1")++ }, 8, []int{8, 8}},
		"it is deleted":              {func(m *PerObject[int]) { m.Forget(web) }, 0, []int{0, 8}},
		"another one is deleted":     {func(m *PerObject[int]) { m.Forget(db) }, 7, []int{7}},
		"what was never is deleted":  {func(m *PerObject[int]) { m.Forget(types.NamespacedName{Name: "web"}) }, 7, []int{7, 8}},
		"it is made again":           {func(m *PerObject[int]) { *m.Get(web, "u2") = 3 }, 0, []int{0, 8}},
		"the controller begins anew": {func(m *PerObject[int]) { m.Clear() }, 0, []int{0}},
	} {
		t.Run(name, func(t *testing.T) {
			var m PerObject[int]
			m.Forget(web)
			*m.Get(web, "u1"), *m.Get(db, "u1") = 7, 8
			c.then(&m)
			if got := *m.Get(web, "u1"); got != c.web {
				t.Errorf("of web %d is remembered, want %d", got, c.web)
			}
			var all []int
			for _, what := range m.All() {
				all = append(all, *what)
			}
			if slices.Sort(all); !slices.Equal(all, c.all) {
				t.Errorf("%v is remembered, want %v", all, c.all)
			}
		})
	}
}

// TestPerObjectAtOnce is for the race detector: workers share it.
func TestPerObjectAtOnce(t *testing.T) {
	var m PerObject[int]
	var workers sync.WaitGroup
	for _, name := range []string{"a", "b", "c"} {
		key := types.NamespacedName{Name: name}
		workers.Go(func() {
			for range 1000 {
				*m.Get(key, "u")++
				m.All()
			}
		})
	}
	workers.Wait()
	for _, what := range m.All() {
		if *what != 1000 {
			t.Errorf("got %d, want 1000", *what)
		}
	}
	if n := len(m.All()); n != 3 {
		t.Errorf("%d objects, want 3", n)
	}
}
