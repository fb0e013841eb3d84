//go:build cluster

package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appv1 "tkestack.io/tapp/crd/app/v1"
	"tkestack.io/tapp/test/audit"
)

// TestMany creates 500 Apps at once, changes some of them, and counts what the
// controller writes: at creation the Deployment, the Service and the status of
// each, for another port of some of them the Service and the status, and then
// nothing.
func TestMany(t *testing.T) {
	const n = 500
	r := newRig(t, "")
	log := r.FollowAudit()
	name := func(i int) string { return fmt.Sprintf("app-%03d", i) }
	eachOf(n, func(i int) {
		if _, err := r.Apps.Create(t.Context(), simple(name(i), 1), metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
	})
	r.allReady(n)
	counts := r.rest(log)
	progress := r.progress()
	t.Logf("creation: %v; %d more statuses are due to rollouts that took long", counts, progress)
	expect(t, "creation", counts, map[string]span{
		"patch deployments/ 201": {n, n}, "patch services/ 201": {n, n}, "patch apps/status 200": {n, n + progress}, "create events/ 201": {n, n},
	})

	const changed = 50
	eachOf(changed, func(i int) { r.edit(name(i), func(s *appv1.AppSpec) { s.ServiceTemplate.Port = 80 }) })
	r.allReady(n)
	counts = r.rest(log)
	t.Logf("another port: %v", counts)
	expect(t, "another port", counts, map[string]span{
		"patch services/ 200": {changed, changed}, "patch apps/status 200": {changed, changed}, "create events/ 201": {changed, changed},
	})
}

// span is how often something is to happen.
type span struct{ least, most int }

func expect(t *testing.T, phase string, counts map[string]int, want map[string]span) {
	t.Helper()
	for what, s := range want {
		if n := counts[what]; n < s.least || n > s.most {
			t.Errorf("%s: %d times %q, want %d to %d", phase, n, what, s.least, s.most)
		}
		delete(counts, what)
	}
	if len(counts) > 0 {
		t.Errorf("%s: other writes: %v", phase, counts)
	}
}

// progress is how many statuses may tell of rollouts that are under way: one every ten
// seconds, which is how long they are held back, from an App's creation until it is ready.
func (r *rig) progress() int {
	r.Helper()
	list, err := r.Apps.List(r.Context(), metav1.ListOptions{})
	if err != nil {
		r.Fatal(err)
	}
	out := 0
	for i := range list.Items {
		a := &list.Items[i]
		took := a.Status.Conditions[0].LastTransitionTime.Sub(a.CreationTimestamp.Time) + time.Second // both are whole seconds
		out += int(took / (10 * time.Second))
	}
	return out
}

// eachOf calls f for 0 to n-1, many at a time.
func eachOf(n int, f func(int)) {
	next := make(chan int)
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	workers.Wait()
}

func (r *rig) allReady(n int) {
	r.Helper()
	r.Eventually(fmt.Sprintf("%d Apps are ready", n), func(ctx context.Context) error {
		list, err := r.Apps.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		ready := 0
		for i := range list.Items {
			a := &list.Items[i]
			if a.Status.ObservedGeneration == a.Generation && a.Status.Ready == "1/1" && a.Status.Conditions[0].Status == metav1.ConditionTrue {
				ready++
			}
		}
		if ready != n {
			return fmt.Errorf("%d are", ready)
		}
		return nil
	})
}

// rest counts the writes of the controller since the last call, until there were
// none for a while.
func (r *rig) rest(log *audit.Log) map[string]int {
	r.Helper()
	const quiet = 12 * time.Second // longer than a status is held back
	out := map[string]int{}
	last := time.Now()
	r.Eventually("nothing is written any more", func(context.Context) error {
		for _, w := range r.writes(log) {
			out[fmt.Sprintf("%s %s/%s %d", w.Verb, w.Resource, w.Subresource, w.Code)]++
			last = time.Now()
		}
		if time.Since(last) < quiet {
			return errors.New(fmt.Sprint(out))
		}
		return nil
	})
	return out
}
