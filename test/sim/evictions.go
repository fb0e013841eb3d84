package sim

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/sim/apiserver"
)

// How pods are taken away, as Kubernetes writes it (kubernetes/kubernetes#122122,
// kubernetes/kubernetes#118310).
//
//	by the kubelet: phase, reason, and DisruptionTarget at once
//	    shutdown    Failed or Succeeded, Terminated: the node shuts down in order
//	    pressure    Failed, Evicted
//	    preempted   Failed, Preempting: a critical pod needs the room
//	    refused     Failed, OutOfcpu and others: before any container; no DisruptionTarget
//	by others: DisruptionTarget first, and then a deletion
//	    tainted     DeletionByTaintManager
//	    preempts    PreemptionByScheduler
//	    api         EvictionByEvictionAPI
//
// disruption is what a kubelet or another says of a pod that it takes away.
type disruption struct {
	phase  corev1.PodPhase
	reason string
	// says is the reason of the condition.
	says string
}

func disruptionsByKubelets() []disruption {
	return []disruption{
		{corev1.PodFailed, "Terminated", corev1.PodReasonTerminationByKubelet},
		{corev1.PodSucceeded, "Terminated", corev1.PodReasonTerminationByKubelet},
		{corev1.PodFailed, "Evicted", corev1.PodReasonTerminationByKubelet},
		{corev1.PodFailed, "Preempting", corev1.PodReasonTerminationByKubelet},
	}
}

func disruptionsByOthers() []string {
	return []string{"DeletionByTaintManager", corev1.PodReasonPreemptionByScheduler, "EvictionByEvictionAPI"}
}

func refusals() []string { return []string{"OutOfcpu", "NodeAffinity", "UnexpectedAdmissionError"} }

// lateReport is how long after the end of a pod nobody can tell whether what its kubelet says
// of a disruption was what ended it.
const lateReport = 2 * time.Minute

// takeAway is a kubelet that ends a pod which would have gone on. It writes the condition when
// that is done, some time after the containers ended. Where the pod has long come to its end
// by itself, it says so all the same.
func (k *kubelets) takeAway(s *sandbox, d disruption) {
	now := k.clockOf(s.node)
	if s.ended != "" {
		if s.byItself && s.disrupted == nil && now.Sub(s.endedAt.Time) > lateReport {
			s.disrupted, s.unreported = disruptionTarget(d.says, now), true
		}
		return
	}
	for _, c := range s.seen.Spec.Containers {
		if has := s.runs[c.Name]; has == nil || has.State.Running == nil {
			d.phase = corev1.PodFailed // nothing of it can have succeeded
		}
	}
	k.end(s, d.phase, d.reason)
	s.lost, s.disrupted = true, disruptionTarget(d.says, metav1.NewTime(now.Add(time.Duration(len(d.reason))*time.Second)))
}

func disruptionTarget(reason string, at metav1.Time) *corev1.PodCondition {
	return &corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: at}
}

// condemn is who says that a pod is to go, and deletes it some time later.
func (k *kubelets) condemn(pod *corev1.Pod, reason string) {
	if pod.DeletionTimestamp != nil || isFinished(pod) || isDisrupted(pod) {
		return
	}
	k.write(keyOf(pod), pod.UID, "eviction", func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, *disruptionTarget(reason, k.Second()))
	})
}

// refuse is the admission of a kubelet that has no room for a pod which came to it.
func (k *kubelets) refuse(s *sandbox) bool {
	if k.refusing == 0 {
		return false
	}
	k.refusing--
	s.lost = true
	k.end(s, corev1.PodFailed, refusals()[k.refusing%len(refusals())])
	return true
}

// storeEnd is a former version that stored the end of an instance that always restarts, and
// whose pod is gone.
func (w *world) storeEnd(pod *corev1.Pod) {
	app, id := stem(keyOf(pod))
	t, exists := apiserver.Find[*tappv1.TApp](w.Store, tapps, app)
	if !exists || controllerOf(pod) != t.UID || !alwaysRestarts(template(defaulted(t), id)) {
		return
	}
	_, _ = w.Update(tapps, app, "status", w.as("former version"), func(o object) error {
		set(&o.(*tappv1.TApp).Status.Statuses, id, tappv1.InstanceSucc)
		return nil
	})
	_, _ = w.Remove(pods, keyOf(pod), metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}, w.as("former version"))
}
