package tapp

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/template"
)

// A pod that ended is followed by the next one after a delay that doubles with
// every failure in a row; one that ran for longer than restartReset starts anew.
const (
	restartDelay    = 10 * time.Second
	restartDelayMax = 5 * time.Minute
	restartReset    = 10 * time.Minute
	// recordDelay is when to look again after a status that must be stored before
	// a pod may be deleted.
	recordDelay = time.Second
)

// runsAgain says whether a pod that ended is followed by another one. First
// match decides.
func (d *decision) runsAgain(i *instance) bool {
	switch pod := i.pod; {
	case i.template == nil:
		return false
	case d.tapp.Spec.NeverMigrate:
		return false
	case len(pod.Status.ContainerStatuses) == 0: // its kubelet rejected it
		return true
	case pod.Spec.RestartPolicy == corev1.RestartPolicyNever:
		return false
	case pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure:
		return pod.Status.Phase == corev1.PodFailed
	}
	return true
}

// isCompleted says whether a wanted instance ended and stays so. After its pod
// is gone the stored status is what tells.
func (d *decision) isCompleted(i *instance) bool {
	if !i.wanted || i.stopped {
		return false
	}
	switch i.state {
	case finished:
		return !d.runsAgain(i)
	case dying, missing:
		// A kubelet gives a pod that it was told to delete a final phase too, so that
		// the phase of a dying pod does not tell whether it ended by itself.
		return isEnd(d.tapp.Status.Statuses[i.id])
	}
	return false
}

func isEnd(s tappv1.InstanceStatus) bool {
	return s == tappv1.InstanceFailed || s == tappv1.InstanceSucc
}

func endOf(pod *corev1.Pod) tappv1.InstanceStatus {
	if pod.Status.Phase == corev1.PodFailed {
		return tappv1.InstanceFailed
	}
	return tappv1.InstanceSucc
}

// followEnds replaces pods that ended and are to run again, and deletes those
// that are not, when it is their time.
func (d *decision) followEnds() {
	allEnded := true
	for _, i := range d.instances {
		if i.wanted && !i.completed && (!i.stopped || i.pod != nil) {
			allEnded = false
		}
	}
	for _, i := range d.instances {
		switch {
		case i.state != finished || !i.wanted || i.stopped:
		case !i.completed:
			d.replace(i)
		case i.template == nil: // the end may turn out to be none, when it is back
		case d.in.Policy.DeletePodAfterAppFinish && !allEnded:
			i.hold(reasonNotFinished, "its pod ended, and is deleted when all instances have ended")
		case d.tapp.Status.Statuses[i.id] != endOf(i.pod):
			// Once the pod is gone only the stored status knows that it ended.
			d.waitFor(recordDelay)
		default:
			d.delete(i, "Finished", "the pod ended")
		}
	}
}

// replace has the next pod of an instance follow one that ended, at once when
// its template changed since, otherwise after the delay.
func (d *decision) replace(i *instance) {
	reason, why := "PodEnded", "the pod ended"
	switch {
	case i.pod.Status.Reason != "":
		reason, why = "PodFailed", "the pod failed: "+i.pod.Status.Reason
	case i.pod.Status.Phase == corev1.PodFailed:
		reason, why = "PodFailed", "the pod failed"
	}
	failures := 0
	if hash := i.pod.Labels[tappv1.LabelTemplateHash]; hash == i.template.Hashes.Template || !template.IsOurs(hash) {
		ended := endTime(i.pod)
		if start := i.pod.Status.StartTime; start == nil || ended.Sub(start.Time) < restartReset {
			failures, _ = strconv.Atoi(i.pod.Annotations[tappv1.AnnotationFailures])
			failures = max(0, failures)
		}
		if left := delayAfter(failures) - d.in.Now.Sub(ended); left > 0 {
			d.waitFor(left)
			i.hold("Backoff", why+"; the next one follows "+delayAfter(failures).String()+" after its end")
			return
		}
		failures++
	}
	if !d.createClaims(i) {
		return
	}
	a := d.birth(i, OpReplace, failures, reason, why)
	a.Old = i.pod
	i.act(a)
}

// delayAfter returns how long to wait after a number of failures in a row.
func delayAfter(failures int) time.Duration {
	const doublings = 5 // 10 s · 2⁵ is more than 5 min
	return min(restartDelay<<min(failures, doublings), restartDelayMax)
}

// endTime of a pod that ended. A rejected one has no container that tells.
func endTime(pod *corev1.Pod) time.Time {
	var end time.Time
	for _, c := range pod.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil && t.FinishedAt.After(end) {
			end = t.FinishedAt.Time
		}
	}
	if end.IsZero() {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.DisruptionTarget || c.Type == corev1.PodReady {
				if c.LastTransitionTime.After(end) {
					end = c.LastTransitionTime.Time
				}
			}
		}
	}
	if end.IsZero() && pod.Status.StartTime != nil {
		end = pod.Status.StartTime.Time
	}
	if end.IsZero() {
		end = pod.CreationTimestamp.Time
	}
	return end
}
