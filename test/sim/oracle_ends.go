package sim

import (
	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/sim/apiserver"
)

// isCompleted says whether an instance ended, and stays so. That another controller takes
// its name afterwards does not have it run again.
func (o *oracle) isCompleted(t *tappv1.TApp, pod *corev1.Pod, id string) bool {
	if pod == nil || pod.DeletionTimestamp != nil || controllerOf(pod) != t.UID {
		return isEnd(t.Status.Statuses[id])
	}
	return isFinished(pod) && !o.runsAgain(t, pod)
}

func (o *oracle) runsAgain(t *tappv1.TApp, pod *corev1.Pod) bool {
	switch s := o.w.sandboxes[pod.UID]; {
	case s != nil && s.byUpdate:
		return true
	case t.Spec.NeverMigrate:
		return false
	case len(pod.Status.ContainerStatuses) == 0:
		return true
	case pod.Spec.RestartPolicy == corev1.RestartPolicyNever:
		return false
	case pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure:
		return pod.Status.Phase == corev1.PodFailed
	}
	return true
}

func isEnd(s tappv1.InstanceStatus) bool {
	return s == tappv1.InstanceFailed || s == tappv1.InstanceSucc
}

func instanceKey(t *tappv1.TApp, id string) string { return string(t.UID) + " " + id }

// noteEnd notes, for S8, that an instance came to its end: its pod ended, no update and
// nobody who deleted it had a hand in that, and the TApp does not have it run again.
func (o *oracle) noteEnd(pod *corev1.Pod) {
	app, id := stem(keyOf(pod))
	t, exists := apiserver.Find[*tappv1.TApp](o.w.Store, tapps, app)
	if exists && isFinished(pod) && pod.DeletionTimestamp == nil && controllerOf(pod) == t.UID && !o.runsAgain(t, pod) {
		o.ended[instanceKey(t, id)] = true
	}
}
