package sim

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/sim/apiserver"
	"tkestack.io/tapp/test/sim/process"
)

// is says whether a fault that lasts is on.
func (w *world) is(kind string) bool { return w.until[kind] > w.steps }

// follow does what the plan has for this step.
func (w *world) follow() {
	for _, e := range w.plan.Edits {
		if e.Step == w.steps {
			w.trace.say(w.steps, w.now(), "user: %s %s %d %d", e.App, e.Kind, e.A, e.B)
			w.edit(e)
		}
	}
	for _, f := range w.plan.Faults {
		if f.Step == w.steps {
			if slices.Contains(writeFaults(), f.Kind) {
				w.armed = append(w.armed, f)
				continue
			}
			w.trace.say(w.steps, w.now(), "fault: %s %d", f.Kind, f.A)
			w.strike(f)
		}
	}
	w.recover()
	w.idle = w.is(collectorStands)
	if !w.is(podHeld) {
		w.letGo()
	}
	if w.quota >= 0 && !w.is(quotaFull) {
		w.quota = -1
	}
	if len(w.alive()) > 1 && !w.is(secondLeader) {
		w.kill(w.alive()[0])
	}
}

// recover brings back the nodes whose time has come.
func (w *world) recover() {
	for _, name := range nodeNames() {
		if w.down[name] && !w.is(nodeSilent+name) && name != w.lost {
			w.revive(name)
		}
		if w.Get(nodes, name) == nil && !w.is(nodeGone+name) && name != w.lost {
			w.addNode(name)
		}
	}
}

// strike is what goes wrong beside writes.
func (w *world) strike(f Fault) {
	node := nodeNames()[f.A%len(nodeNames())]
	switch f.Kind {
	case secondLeader:
		w.until[f.Kind] = w.steps + 20 + f.A
		_ = w.start()
	case orderly:
		for _, r := range w.alive() {
			r.stopping = true
			r.Stop()
		}
	case staleReads, watchFreeze:
		w.until[f.Kind] = w.steps + 10 + f.A
	case watchExpire, watchClose:
		w.until[f.Kind] = w.steps + 5
		for _, x := range w.watches {
			if f.Kind == watchExpire {
				x.Expire()
			} else {
				x.End()
			}
			synctest.Wait() // clients draw how long they wait: one after the other
		}
	case nodeSilent:
		w.until[f.Kind+node] = w.steps + 20 + 2*f.A
		w.silence(node)
		w.cordon(node, f.A)
	case nodeGone:
		w.until[f.Kind+node] = w.steps + 20 + f.A
		_, _ = w.Remove(nodes, node, metav1.DeleteOptions{}, w.as("operator"))
		for _, s := range w.sandboxes { // the machine is gone
			if s.node == node {
				s.stopped = true
			}
		}
	case rivalComes:
		w.rivalArrives(f.A)
	case claimByHand, claimUnmarked, claimOfNamesake, claimOfOther:
		w.strikeClaim(f)
	case podsRefused:
		w.refusing += 1 + f.A%3
	case revisionDeleted:
		if list := apiserver.All[*appsv1.ControllerRevision](w.Store, revisions); len(list) > 0 {
			_, _ = w.Remove(revisions, keyOf(list[f.A%len(list)]), metav1.DeleteOptions{}, w.as("somebody"))
		}
	case kubeletRestarts:
		w.restartKubelet(node, f.A%2 == 0)
	case nodeTainted:
		w.until[nodeSilent+node] = w.steps + 20 + 2*f.A
		w.takeOut(node, f.A)
	case nodeLost:
		names := nodeNames()
		w.lost = names[len(names)-1] // the controller reads nodes in the order of their names
		w.takeOut(w.lost, 0)
	case policyComes:
		w.until[f.Kind] = w.steps + 30 + 2*f.A
		w.policyOf = f.A
	case quotaFull:
		w.until[f.Kind] = w.steps + 10 + f.A
		w.quota = f.A % 4
	case collectorStands:
		w.until[f.Kind] = w.steps + 60 + f.A
	case claimDeleted:
		if list := apiserver.All[*corev1.PersistentVolumeClaim](w.Store, claims); len(list) > 0 {
			_, _ = w.Remove(claims, keyOf(list[f.A%len(list)]), metav1.DeleteOptions{}, w.as("somebody"))
		}
	case claimLetGo:
		w.strikeTerminating(f)
	case clockJump:
		w.advance(time.Duration(1+f.A)*10*time.Second+oddTime, true)
	default:
		w.strikePod(f)
	}
}

func (w *world) silence(node string) {
	w.down[node] = true
	w.setNode(node, corev1.ConditionUnknown)
}

// takeOut is an operator who gives a node up.
func (w *world) takeOut(node string, n int) {
	w.silence(node)
	w.cordon(node, n)
	_, _ = w.Update(nodes, node, "", w.as("operator"), func(o object) error {
		n := o.(*corev1.Node)
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute})
		return nil
	})
}

// cordon is the operator who deletes the pods of a node, sometimes.
func (w *world) cordon(node string, n int) {
	for _, pod := range apiserver.All[*corev1.Pod](w.Store, pods) {
		if pod.Spec.NodeName == node && n%2 == 0 {
			_, _ = w.Remove(pods, keyOf(pod), metav1.DeleteOptions{}, w.as("operator"))
		}
	}
}

func (w *world) setNode(name string, is corev1.ConditionStatus) {
	_, _ = w.Update(nodes, name, "status", w.as("nodes"), func(o object) error {
		c := &o.(*corev1.Node).Status.Conditions[0]
		c.Status, c.LastTransitionTime = is, w.Second()
		return nil
	})
}

func (w *world) revive(name string) {
	delete(w.down, name)
	w.setNode(name, corev1.ConditionTrue)
	_, _ = w.Update(nodes, name, "", w.as("operator"), func(o object) error {
		o.(*corev1.Node).Spec.Taints = nil
		return nil
	})
	w.forget()
	for _, s := range w.sandboxes {
		if s.node == name {
			s.unreported = true
		}
	}
}

// strikePod is what goes wrong with a pod.
func (w *world) strikePod(f Fault) {
	list := apiserver.All[*corev1.Pod](w.Store, pods)
	if f.Kind == foreignPod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("web-%d", f.A%fewReplicas)}}
		pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "other:v1"}}
		if f.A%2 == 0 {
			pod.OwnerReferences = []metav1.OwnerReference{foreignOwner()}
		}
		_, _ = w.Create(pods, pod, w.as("somebody"))
	}
	if len(list) == 0 {
		return
	}
	pod := list[f.A%len(list)]
	s := w.sandboxes[pod.UID]
	edit := func(change func(*corev1.Pod)) {
		_, _ = w.Update(pods, keyOf(pod), "", w.as("somebody"), func(o object) error {
			change(o.(*corev1.Pod))
			return nil
		})
	}
	switch f.Kind {
	case disrupted:
		w.condemn(pod, disruptionsByOthers()[f.A%len(disruptionsByOthers())])
	case endStored:
		w.storeEnd(pod)
	case evicted, podEnds, containerEnds, takenAway:
		if s == nil || s.ended != "" && f.Kind != takenAway || w.down[s.node] || pod.DeletionTimestamp != nil {
			return
		}
		switch f.Kind {
		case evicted:
			w.takeAway(s, disruption{corev1.PodFailed, "Evicted", corev1.PodReasonTerminationByKubelet})
		case takenAway:
			w.takeAway(s, disruptionsByKubelets()[f.A%len(disruptionsByKubelets())])
		case podEnds:
			if len(s.runs) == 0 {
				return // nothing of it has begun
			}
			s.byItself = true
			w.kubelets.end(s, []corev1.PodPhase{corev1.PodFailed, corev1.PodSucceeded}[f.A%2], "")
		case containerEnds:
			w.crash(s)
		}
	case podHangs:
		if s != nil && s.node != w.lost {
			s.hangs = true
			_, _ = w.Remove(pods, keyOf(pod), metav1.DeleteOptions{}, w.as("somebody"))
		}
	case foreignDelete, foreignForce:
		o := metav1.DeleteOptions{}
		if f.Kind == foreignForce {
			o.GracePeriodSeconds = new(int64)
		}
		_, _ = w.Remove(pods, keyOf(pod), o, w.as("somebody"))
	case podHeld:
		w.until[f.Kind] = w.steps + 60 + 2*f.A
		edit(func(p *corev1.Pod) { p.Finalizers = append(p.Finalizers, holds) })
	case foreignAdopt:
		edit(func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{foreignOwner()} })
	case foreignOrphan:
		edit(func(p *corev1.Pod) { p.OwnerReferences = nil })
	case foreignLabel:
		edit(func(p *corev1.Pod) {
			switch f.A % 3 {
			case 0:
				delete(p.Labels, "app")
			case 1:
				w.tampered[p.UID] = true
				delete(p.Labels, tappv1.LabelTemplateHash)
			case 2:
				w.tampered[p.UID] = true
				set(&p.Labels, tappv1.LabelTemplateHash, wrongHash)
			}
		})
	}
}

// wrongHash is what somebody overwrites the hash of a pod with.
const wrongHash = "wrong"

// holds is the finalizer that somebody puts on pods.
const holds = "example.com/hold"

// letGo takes it off all of them.
func (w *world) letGo() {
	for _, pod := range apiserver.All[*corev1.Pod](w.Store, pods) {
		if slices.Contains(pod.Finalizers, holds) {
			w.dropFinalizer(pods, pod, holds)
		}
	}
}

// foreignOwner is a controller that is none of ours.
func foreignOwner() metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "other", UID: "foreign", Controller: ptr.To(true)}
}

// write carries out a write with the fault that waits for one.
func (w *world) write(r *request) {
	w.done(r)
	where := site(w.Store, r)
	if r.abandoned.Load() {
		if w.rng.IntN(2) == 0 {
			w.trace.say(w.steps, w.now(), "%s (gone) %s: arrives late", r.replica.Name, r)
			w.Serve(r.Request, 0, r.actor(w.now()))
		}
		return
	}
	w.wrote = w.now()
	fault := ""
	if i := slices.IndexFunc(w.armed, func(f Fault) bool { return f.Site == "" || f.Site == where }); i >= 0 {
		fault = w.armed[i].Kind
		w.armed = slices.Delete(w.armed, i, i+1)
	}
	w.coverage.visit(where, fault)
	w.trace.write(w.steps, w.now(), r, where, fault)
	if err := w.oracle.asked(r); err != nil {
		w.fail(err)
	}
	switch fault {
	case crashBefore:
		w.kill(r.replica)
		r.answer <- &apiserver.Answer{Err: process.ErrDead}
		return
	case crashAfter:
		w.Serve(r.Request, 0, r.actor(w.now()))
		w.kill(r.replica)
		r.answer <- &apiserver.Answer{Err: process.ErrDead}
		return
	}
	if a := w.refuse(fault, r); a != nil {
		r.answer <- a
		return
	}
	w.BreaksOff = fault == halfRemoved
	r.unsure = fault == halfRemoved || fault == lostAnswer
	a := w.Serve(r.Request, 0, r.actor(w.now()))
	w.BreaksOff = false
	w.trace.answer(w.steps, w.now(), r, a)
	if !r.unsure {
		w.oracle.answered(r, a)
	}
	if err := w.oracle.heard(r, a); err != nil {
		w.fail(err)
	}
	if r.Resource == tapps && a.Status == http.StatusUnprocessableEntity && bytes.Contains(a.Body, []byte(pathOfConditions)) {
		w.fail(fmt.Errorf("S10: the schema refuses a status, and all that waits for it waits with it: %s", a.Body))
	}
	if a.IsTooLarge() {
		w.fail(fmt.Errorf("S10: etcd does not take what TApp writes, though admission let in its spec: %s", r.Verb+" "+r.Resource))
	}
	switch fault {
	case lostAnswer:
		a = &apiserver.Answer{Err: context.DeadlineExceeded}
	case halfRemoved:
		a = apiserver.Refusal(apierrors.NewTimeoutError("simulated", 1))
	}
	r.answer <- a
}

// refuse is the answer to a write that is not carried out.
func (w *world) refuse(fault string, r *request) *apiserver.Answer {
	gr := w.GroupResource(r.Resource)
	switch fault {
	case lostWrite:
		return &apiserver.Answer{Err: context.DeadlineExceeded}
	case lateWrite:
		late := &request{Request: r.Request, replica: r.replica, issued: r.issued, answer: r.answer, belief: r.belief, joined: r.joined, settled: r.settled}
		late.abandoned.Store(true)
		w.desk.Submit(late)
		return &apiserver.Answer{Err: context.DeadlineExceeded}
	case conflict:
		return apiserver.Refusal(apierrors.NewConflict(gr, r.Name, fmt.Errorf("simulated")))
	case tooMany:
		w.postponed(r)
		a := apiserver.Refusal(apierrors.NewTooManyRequests("simulated", 1))
		a.Header = http.Header{"Retry-After": {"1"}}
		return a
	case serverError:
		return apiserver.Refusal(apierrors.NewInternalError(fmt.Errorf("simulated")))
	case serverAway:
		return apiserver.Refusal(apierrors.NewServiceUnavailable("simulated"))
	case writeTimeout:
		return apiserver.Refusal(apierrors.NewTimeoutError("simulated", 1))
	}
	return nil
}
