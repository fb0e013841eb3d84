//go:build cluster

package failover

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/audit"
)

const (
	instances = 200
	budget    = 20
	kills     = 10
	stops     = 3
)

// TestLeaderFailover: in the middle of rolling updates the leader is killed ten
// times, and stopped in order three times, at random moments. Another one goes on: after a
// leader that stopped in order had released the Lease, and after one that was killed not
// before its Lease expired. Nothing happens that must not: see test/witness. How long it
// takes depends on the machine, and is logged.
func TestLeaderFailover(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	r := newRig(t)
	requests := r.FollowAudit()
	lease := followLease(r)
	f := newFleet(r, 3)
	others := strangers(r)
	o := begin(r, instances, budget)
	o.next()
	took := map[bool][]time.Duration{}
	for n := range kills + stops {
		clean := n >= kills
		if updated, _ := o.progress(); updated >= instances-2*budget {
			o.next()
		}
		updated, _ := o.progress()
		o.reaches(updated + 1 + random.IntN(min(50, instances-budget-updated))) // soon, to be done in time
		was, holder, began := f.leader, lease.holder(), time.Now()
		if clean {
			was.terminate()
		} else {
			was.kill()
		}
		f.leads(was)
		o.moves()
		took[clean] = append(took[clean], time.Since(began).Round(time.Millisecond))
		at, _ := o.progress()
		t.Logf("%d: the leader went (in order: %v) at %d of %d", n+1, clean, at, instances)
		if why := lease.handover(holder, clean); why != "" {
			t.Errorf("%d: %s", n+1, why)
		}
		if clean {
			was.hasEnded()
		}
		f.replace(was)
	}
	for clean, list := range took {
		slices.Sort(list)
		t.Logf("leaders that went (in order: %v): another one goes on after %v (median), %v at most", clean, list[len(list)/2], list[len(list)-1])
	}
	o.ends()
	touched(r, requests, others)
}

// fleet is the replicas of a controller.
type fleet struct {
	rig *rig
	// flags of each replica, beside those that all tests need.
	flags    []string
	replicas []*replica
	leader   *replica
}

func newFleet(r *rig, n int, flags ...string) *fleet {
	r.Helper()
	f := &fleet{rig: r, flags: append([]string{"--leader-elect-resource-namespace", r.NS, "--namespace", r.NS}, flags...)}
	for range n {
		f.start()
	}
	f.leads(nil)
	return f
}

// start one more; it has no time to become ready before the test goes on.
func (f *fleet) start() {
	f.rig.Helper()
	f.replicas = append(f.replicas, f.rig.launch("controller", f.flags...))
}

// replace one that went.
func (f *fleet) replace(was *replica) {
	f.rig.Helper()
	f.replicas = slices.DeleteFunc(f.replicas, func(r *replica) bool { return r == was })
	f.start()
}

// leads waits until one leads that is not the one before.
func (f *fleet) leads(before *replica) {
	f.rig.Helper()
	f.rig.Eventually("another one leads", func(context.Context) error {
		for _, r := range f.replicas {
			if r != before && r.isLeader() {
				f.leader = r
				return nil
			}
		}
		return errors.New("nobody does")
	})
}

// strangers are pods that look like a TApp's, and are not.
func strangers(r *rig) []string {
	r.Helper()
	owner, err := r.Kube.CoreV1().ConfigMaps(r.NS).Create(r.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	if err != nil {
		r.Fatal(err)
	}
	controls := true
	owned := []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, Controller: &controls}}
	var names []string
	for _, m := range []metav1.ObjectMeta{
		{Name: fmt.Sprint("a-", instances), OwnerReferences: owned, Labels: map[string]string{"app": "a", tappv1.LabelInstanceID: fmt.Sprint(instances)}},
		{Name: "b-0", Labels: map[string]string{"app": "a", tappv1.LabelInstanceID: "0"}},
		{Name: "a-7-", GenerateName: "a-7-", Labels: map[string]string{"app": "a"}},
	} {
		if m.GenerateName != "" {
			m.Name = ""
		}
		p := &corev1.Pod{ObjectMeta: m, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "other"}}}}
		made, err := r.Kube.CoreV1().Pods(r.NS).Create(r.Context(), p, metav1.CreateOptions{})
		if err != nil {
			r.Fatal(err)
		}
		names = append(names, made.Name)
	}
	return names
}

// touched is S7: nobody of us wrote to the strangers.
func touched(r *rig, log *audit.Log, strangers []string) {
	r.Helper()
	ours := r.Requests(log, audit.Filter{Agent: "tapp/", Resource: "pods", Subresource: "*", Namespace: r.NS})
	if len(ours) < instances {
		r.Errorf("the audit log has %d of our requests about pods", len(ours))
	}
	for _, q := range ours {
		if q.IsWrite() && slices.Contains(strangers, q.Name) {
			r.Errorf("S7: %s", q)
		}
	}
}
