package sim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/sim/apiserver"
)

// isCompleted says whether an instance ended, and stays so. That another controller takes
// its name afterwards does not have it run again.
func (o *oracle) isCompleted(t *tappv1.TApp, pod *corev1.Pod, id string) bool {
	if pod == nil || pod.DeletionTimestamp != nil || controllerOf(pod) != t.UID {
		return isEnd(t.Status.Statuses[id]) && !alwaysRestarts(template(t, id))
	}
	return isFinished(pod) && !o.runsAgain(t, pod)
}

// runsAgain says whether the end of a pod is not the end of its instance.
//
//	restartPolicy  refused by its kubelet  lost  failed by itself  succeeded
//	Always         again                   again again             again
//	OnFailure      again                   again again, unless     end
//	                                             neverMigrate
//	Never          again                   again end               end
func (o *oracle) runsAgain(t *tappv1.TApp, pod *corev1.Pod) bool {
	s := o.w.sandboxes[pod.UID]
	if s != nil && s.byUpdate {
		return true
	}
	switch {
	case pod.Spec.RestartPolicy == corev1.RestartPolicyAlways, o.isLoss(pod):
		return true
	case pod.Spec.RestartPolicy == corev1.RestartPolicyNever, t.Spec.NeverMigrate:
		return false
	}
	return pod.Status.Phase == corev1.PodFailed
}

// isLoss says whether a pod ended, and not by itself: what ran there knows.
func (o *oracle) isLoss(pod *corev1.Pod) bool {
	s := o.w.sandboxes[pod.UID]
	told := s != nil && s.byItself && !slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.State.Terminated == nil })
	return len(pod.Status.ContainerStatuses) == 0 || s != nil && s.lost || !told && isDisrupted(pod)
}

// isDisrupted says whether somebody said of a pod that it is about to be taken away.
func isDisrupted(pod *corev1.Pod) bool {
	c := conditionOf(pod, corev1.DisruptionTarget)
	return c != nil && c.Status == corev1.ConditionTrue
}

// alwaysRestarts says whether no end of a pod is the end of an instance, whatever a former
// version stored.
func alwaysRestarts(t *corev1.PodTemplateSpec) bool {
	return t != nil && (t.Spec.RestartPolicy == "" || t.Spec.RestartPolicy == corev1.RestartPolicyAlways)
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

// judgeReady is S8 of a status. A process writes how it differs from a version that it saw.
// Where another leader has written since, what is stored comes of both until the next one, and
// the process is judged by what it meant.
func (o *oracle) judgeReady(c *change) error {
	after := c.After.(*tappv1.TApp)
	err := truthful(defaulted(after))
	if err == nil || !o.wroteMeanwhile(c) {
		return err
	}
	for _, was := range o.appsSeen(c.Key(), causeOf(c).belief) {
		raw, fails := json.Marshal(was)
		if fails != nil || was.UID != after.UID || was.Generation != after.Status.ObservedGeneration {
			continue
		}
		meant := &tappv1.TApp{}
		if raw, fails = jsonpatch.MergePatch(raw, causeOf(c).Body); fails == nil && json.Unmarshal(raw, meant) == nil && truthful(defaulted(meant)) == nil {
			return nil
		}
	}
	return err
}

// wroteMeanwhile says whether another process wrote to a TApp that a process had not seen, or
// the process itself: it does not wait for a write that arrives late.
func (o *oracle) wroteMeanwhile(c *change) bool {
	return slices.ContainsFunc(o.w.Tables[tapps].Since(causeOf(c).belief.told[tapps]), func(other *change) bool {
		return other.Version < c.Version && other.Key() == c.Key() && causeOf(other) != nil && (causeOf(other).replica != causeOf(c).replica || causeOf(c).abandoned.Load())
	})
}

// truthful is about a Ready that hides what does not run (kubernetes/kubernetes#122122): where
// fewer instances are available than the spec asks for, the message counts the completed ones.
func truthful(t *tappv1.TApp) error {
	ready := meta.FindStatusCondition(t.Status.Conditions, tappv1.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionTrue || t.Status.ObservedGeneration != t.Generation {
		return nil
	}
	asked := int32(0)
	for _, id := range idsOf(t) {
		if t.Spec.Statuses[id] != tappv1.InstanceKilled {
			asked++
		}
	}
	if completed := asked - t.Status.AvailableReplicas; completed > 0 && !strings.Contains(ready.Message, fmt.Sprintf("%d completed", completed)) {
		return fmt.Errorf("S8: Ready is True, %d of %d are available, and its message hides that: %s", t.Status.AvailableReplicas, asked, ready.Message)
	}
	return nil
}
