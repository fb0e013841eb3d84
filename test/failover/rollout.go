//go:build cluster

// Package failover tests what happens when processes of tapp go, in the middle of
// what they do, as their users' are: started by their command line, with default
// timings.
package failover

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/gen"
	"tkestack.io/tapp/test/witness"
)

// rig is a namespace on simulated nodes.
type rig struct{ *cluster.Rig }

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{cluster.New(t, "failover")}
	r.ForceDeletePods()
	return r
}

// marker is the annotation that says which rollout a pod belongs to.
const marker = "rollout"

// rollout is a TApp that is updated again and again: in place, then by recreating,
// and so on.
type rollout struct {
	rig      *rig
	replicas int
	witness  *witness.Witness

	mu        sync.Mutex
	number    int             // of the update that was begun last
	recreated int             // how many updates have recreated the pods
	updated   map[string]bool // pods of this update
	steps     int             // writes of a controller that were seen
	changed   chan struct{}   // closed at the next step
}

// begin makes the TApp and waits until it runs.
func begin(r *rig, replicas, budget int) *rollout {
	r.Helper()
	o := &rollout{rig: r, replicas: replicas, updated: map[string]bool{}, changed: make(chan struct{})}
	t := gen.TApp("a", gen.Replicas(int32(replicas)), gen.MaxUnavailable(strconv.Itoa(budget)),
		gen.Default(gen.Simulated(), gen.Annotation(marker, "0"), func(p *corev1.PodTemplateSpec) {
			// Not 0: then the API server writes twice, and who is killed in between leaves a
			// pod that only a real kubelet removes.
			second := int64(1)
			p.Spec.TerminationGracePeriodSeconds = &second
		}))
	if _, err := r.TApps.Create(r.Context(), t, metav1.CreateOptions{}); err != nil {
		r.Fatal(err)
	}
	r.WaitReady("a")
	o.witness = witness.Watch(r.T, r.Kube.CoreV1().Pods(r.NS))
	o.witness.Expect(budget)
	o.witness.Follow(o.see)
	return o
}

// see counts what only a controller does.
func (o *rollout) see(before, after *corev1.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case after == nil:
		delete(o.updated, before.Name)
		return
	case before == nil: // created
	case before.Annotations[marker] != after.Annotations[marker]: // patched
	case before.DeletionTimestamp == nil && after.DeletionTimestamp != nil: // deleted
	case gate(before) != gate(after): // drained, or back in service
	default:
		return
	}
	o.steps++
	if after.Annotations[marker] == strconv.Itoa(o.number) && after.DeletionTimestamp == nil {
		o.updated[after.Name] = true
	}
	close(o.changed)
	o.changed = make(chan struct{})
}

func gate(p *corev1.Pod) corev1.ConditionStatus {
	for _, c := range p.Status.Conditions {
		if c.Type == tappv1.GateInPlaceUpdate {
			return c.Status
		}
	}
	return ""
}

// next begins an update, whether or not the last one has ended.
func (o *rollout) next() {
	o.rig.Helper()
	o.mu.Lock()
	o.number++
	n := strconv.Itoa(o.number)
	inPlace := o.number%2 == 1
	if !inPlace {
		o.recreated++
	}
	clear(o.updated)
	o.mu.Unlock()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		t, err := o.rig.TApps.Get(o.rig.Context(), "a", metav1.GetOptions{})
		if err != nil {
			return err
		}
		gen.Default(gen.Annotation(marker, n))(t)
		if inPlace {
			gen.Default(gen.Image("demo:" + n))(t)
		} else {
			gen.Default(gen.Env("VERSION", n))(t)
		}
		_, err = o.rig.TApps.Update(o.rig.Context(), t, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		o.rig.Fatal(err)
	}
}

// progress so far: instances of this update, steps of all.
func (o *rollout) progress() (updated, steps int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.updated), o.steps
}

// reaches waits until so many instances are updated.
func (o *rollout) reaches(n int) {
	o.rig.Helper()
	o.await(fmt.Sprint(n, " instances are updated"), func() bool { return len(o.updated) >= n })
}

// moves waits for the next step of a controller.
func (o *rollout) moves() {
	o.rig.Helper()
	_, since := o.progress()
	o.await("a next step", func() bool { return o.steps > since })
}

func (o *rollout) await(what string, reached func() bool) {
	o.rig.Helper()
	timeout := time.After(cluster.Patience)
	for {
		o.mu.Lock()
		ok, changed := reached(), o.changed
		o.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			updated, steps := o.progress()
			o.rig.Fatalf("waiting until %s: %d are, after %d steps", what, updated, steps)
		}
	}
}

// ends waits for the end of the last update, and checks that no instance was
// recreated but by updates that do that.
func (o *rollout) ends() {
	o.rig.Helper()
	o.rig.WaitReady("a")
	o.reaches(o.replicas)
	for i := range o.replicas {
		if name := fmt.Sprint("a-", i); o.witness.Lives(name) > 1+o.recreated {
			o.rig.Errorf("pod %s had %d lives in %d updates that recreate", name, o.witness.Lives(name), o.recreated)
		}
	}
}
