package tapp

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	toolscache "k8s.io/client-go/tools/cache"

	"tkestack.io/tapp/controller/loop"
)

func TestStem(t *testing.T) {
	for name, want := range map[string]string{
		"a-0": "a", "a-12": "a", "a-b-12": "a-b", "a-0-1": "a-0", "data-a-3": "data-a",
		"a": "", "a-": "", "-1": "", "12": "", "a12": "", "a-x1": "", "": "",
	} {
		if got, ok := stem(name); got != want || ok != (want != "") {
			t.Errorf("stem(%q) = %q, %v", name, got, ok)
		}
	}
}

// TestEventsEnqueue: which TApps the events of pods and claims concern.
func TestEventsEnqueue(t *testing.T) {
	name := func(n string) toolscache.ObjectName { return toolscache.ObjectName{Namespace: "ns", Name: n} }
	for event, test := range map[string]struct {
		raise func(*Controller)
		want  []string
	}{
		"a TApp":                            {func(c *Controller) { c.enqueue(name("web")) }, []string{"web"}},
		"a TApp that is gone":               {func(c *Controller) { c.enqueue(name("gone")) }, []string{"gone"}},
		"a pod":                             {func(c *Controller) { c.enqueuePod(name("web-3")) }, []string{"web"}},
		"a pod of a TApp with a dash":       {func(c *Controller) { c.enqueuePod(name("web-blue-3")) }, []string{"web-blue"}},
		"a pod of nobody's name":            {func(c *Controller) { c.enqueuePod(name("web-x")) }, nil},
		"a pod of a TApp that is gone":      {func(c *Controller) { c.enqueuePod(name("gone-1")) }, nil},
		"a claim":                           {func(c *Controller) { c.enqueueClaim(name("data-web-3")) }, []string{"web"}},
		"a claim of two possible owners":    {func(c *Controller) { c.enqueueClaim(name("data-web-blue-3")) }, []string{"blue", "web-blue"}},
		"a claim whose template has dashes": {func(c *Controller) { c.enqueueClaim(name("blue-data-web-3")) }, []string{"web"}},
		"a claim of nobody":                 {func(c *Controller) { c.enqueueClaim(name("data-3")) }, nil},
	} {
		t.Run(event, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &stub{answer: func(string, string, string) (int, any) { return 500, nil }}
				c := s.newController(t)
				for _, n := range []string{"web", "web-blue", "blue"} {
					_ = c.tapps.GetStore().Add(someTApp(n))
				}
				var got []string
				c.loop.Seed = func() []loop.Key { return nil }
				c.loop.Sync = func(_ context.Context, k loop.Key) (loop.Result, error) {
					got = append(got, k.Name)
					return loop.Result{}, nil
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { c.loop.Run(ctx, t.Context()); close(done) }()
				synctest.Wait()
				test.raise(c)
				time.Sleep(time.Second)
				cancel()
				<-done
				slices.Sort(got)
				if fmt.Sprint(got) != fmt.Sprint(test.want) {
					t.Errorf("enqueued %v, want %v", got, test.want)
				}
			})
		})
	}
}
