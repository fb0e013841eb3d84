package fleet

import (
	"slices"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/test/sim/apiserver"
)

// follow does what the plan has for this step.
func (w *world) follow() {
	for i, e := range w.plan.Edits {
		if e.Step == w.steps && !w.plan.Foretold || w.plan.Foretold && w.isDue(i) {
			w.say("user: %s %s %d %d", e.App, e.Kind, e.A, e.B)
			w.edit(e)
		}
	}
	for _, f := range w.plan.Faults {
		if f.Step != w.steps {
			continue
		}
		if slices.Contains(writeFaults(), f.Kind) {
			w.armed = append(w.armed, f)
			continue
		}
		w.say("fault: %s %d", f.Kind, f.A)
		w.strike(f)
	}
}

// strike is what goes wrong beside writes.
func (w *world) strike(f Fault) {
	c := w.members[w.names[f.A%len(w.names)]]
	switch f.Kind {
	case cutThere, cutBack, slow, dumb, revoked, workerLate, workerWrong, podSetsLate, anotherHub:
		w.last(f.Kind, c.name, 10+f.A)
	case down:
		w.last(f.Kind, c.name, 10+f.A)
		w.disconnect(c)
	case restored: // which takes a while, in which nobody is there
		w.last(down, c.name, 1)
		w.disconnect(c)
		w.advance(30*time.Second+oddTime, true)
		c.Restore(max(103, c.Version-int64(1+f.A%12)))
		w.restores++
		for _, p := range apiserver.All[*v1beta1.AdvDeployment](c.Store, parts) {
			if has := w.runs[p.UID]; has != nil {
				has.generation = 0
			}
		}
	case rebuilt:
		w.disconnect(c)
		w.build(c)
	case swapped:
		other := w.members[w.names[(f.A+1)%len(w.names)]]
		w.reregister(c.name, func(s *corev1.Secret) { s.Data[v1beta1.KeyKubeconfig] = []byte(kubeconfig(other)) })
		w.reregister(other.name, func(s *corev1.Secret) { s.Data[v1beta1.KeyKubeconfig] = []byte(kubeconfig(c)) })
	case hubRestored:
		w.restoreHub(f.A)
	case recordsLost:
		w.loseRecords()
	case republished:
		w.mu.Lock()
		w.published++
		w.mu.Unlock()
	case hubFreeze, chartsGone:
		w.last(f.Kind, "", 10+f.A)
	case hubClose:
		w.closeHub()
	case orderly:
		for _, r := range w.alive() {
			r.stopping = true
			r.Stop()
		}
	case instanceFails:
		w.failOne(c, f.A/5)
	case clockJump:
		w.advance(time.Duration(1+f.A)*3*time.Second+oddTime, true)
	}
}

// disconnect breaks all connections to a member.
func (w *world) disconnect(c *cluster) {
	for _, r := range w.replicas {
		r.mu.Lock()
		links := slices.Clone(r.links)
		r.mu.Unlock()
		for _, l := range links {
			if l.to == c {
				_ = l.Close()
				synctest.Wait() // clients draw how long they wait: one after the other
			}
		}
	}
}

func (w *world) closeHub() {
	for _, x := range w.watches {
		if x.to == w.hub {
			x.Expire()
			synctest.Wait()
		}
	}
}

// loseRecords of all rollouts, and the processes that know them.
func (w *world) loseRecords() {
	for _, r := range w.alive() {
		w.kill(r)
	}
	for _, r := range apiserver.All[*appsv1.ControllerRevision](w.hub.Store, apiserver.Revisions) {
		_, _ = w.hub.Remove(apiserver.Revisions, apiserver.Key(r), apiserver.DeleteNow(), w.as("somebody"))
	}
	w.forgot = true
}

// restoreHub brings the hub back to what it was some time ago. Its API server and the
// controller begin anew.
func (w *world) restoreHub(n int) {
	for _, r := range w.alive() {
		w.kill(r)
	}
	w.requests()
	w.hub.Restore(max(103+int64(len(w.names)), w.hub.Version-int64(1+n%20)))
	w.lost = true
	w.say("the hub is at version %d", w.hub.Version)
}
