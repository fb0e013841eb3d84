package tapp

import (
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/ending"
	"tkestack.io/tapp/plan/inplace"
	"tkestack.io/tapp/plan/message"
	"tkestack.io/tapp/plan/termination"
)

const (
	// restartReset: the failures of a pod that ran for longer are not counted.
	restartReset = 10 * time.Minute
	// recordDelay is when to look again after a status that must be stored before
	// a pod may be deleted.
	recordDelay = time.Second
)

// runsAgain says whether a pod that ended is followed by another one now.
func (s *spec) runsAgain(i *instance) bool { return i.template != nil && !s.isFinal(i.pod) }

// isFinal says whether the end of a pod is that of its instance. A template that is
// missing does not decide: it may come back, and what the pod ended by is known only
// while it is there. With neverMigrate a failure is one under OnFailure, too.
func (s *spec) isFinal(pod *corev1.Pod) bool {
	return inplace.StoppedByUpdate(pod) == "" && ending.IsFinal(pod, s.tapp.Spec.NeverMigrate)
}

// isCompleted says whether an instance in range ended and stays so. After its pod
// is gone the stored status is what tells.
func (s *spec) isCompleted(i *instance) bool {
	if !i.inRange || i.stopped {
		return false
	}
	switch i.state {
	case ended:
		return s.isFinal(i.pod)
	case terminating, missing, foreign:
		// A kubelet gives a pod that it was told to delete a final phase too, so that
		// the phase of a terminating pod does not tell whether it ended by itself.
		return isEnd(s.tapp.Status.Statuses[i.name]) && i.mayComplete()
	}
	return false
}

// mayComplete says whether the restartPolicy lets the instance end: that of its pod, or
// else that of its template. Former versions stored ends that are none.
func (i *instance) mayComplete() bool {
	switch {
	case i.state == terminating:
		return ending.MayComplete(&i.pod.Spec)
	case i.template != nil:
		return ending.MayComplete(&i.template.Spec.Spec)
	}
	return true
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

// endIntent: the next pod follows one that ended.
func endIntent(pod *corev1.Pod) intent {
	stopped := inplace.StoppedByUpdate(pod)
	switch {
	case stopped != "":
		return intent{replace, reasonStopped, stopped}
	case ending.Loss(pod) != "":
		return intent{replace, "PodLost", ending.Loss(pod)}
	case pod.Status.Reason != "":
		return intent{replace, "PodFailed", "the pod failed: " + message.Quote(pod.Status.Reason)}
	case pod.Status.Phase == corev1.PodFailed:
		return intent{replace, "PodFailed", "the pod failed"}
	}
	return intent{replace, "PodEnded", "the pod ended"}
}

// followEnds replaces pods that ended and are to run again, and deletes those
// that are not, when it is their time.
func followEnds(s *spec, c *clock, claims *claims, all []*instance) {
	allEnded := !slices.ContainsFunc(all, func(i *instance) bool {
		return i.inRange && !i.completed && (!i.stopped || i.pod != nil)
	})
	for _, i := range all {
		switch {
		case i.state != ended || !i.inRange || i.stopped:
		case s.runsAgain(i):
			s.replace(c, claims, i)
		case !i.completed || i.template == nil: // the template may come back
		case s.policy.DeletePodAfterAppFinish && !allEnded:
			i.wait(reasonNotFinished, "its pod ended, and is deleted when all instances have ended")
		case s.tapp.Status.Statuses[i.name] != endOf(i.pod):
			// Once the pod is gone only the stored status knows that it ended.
			c.waitFor(recordDelay)
		default:
			s.delete(c, i, Action{Reason: "Finished", Why: "the pod ended"})
		}
	}
}

// replace creates the next pod of an instance whose pod ended: at once when an update
// stopped it or its template changed since, otherwise after the delay.
func (s *spec) replace(c *clock, claims *claims, i *instance) {
	if i.isUnread() {
		i.waitForRevisions()
		return
	}
	n, failures := s.intentOf(i), 0
	if n.reason != reasonStopped && (i.hash == s.nextTemplate(i).Hashes.Template || i.isForeign()) {
		end := ending.TimeOf(i.pod)
		if start := i.pod.Status.StartTime; start == nil || end.Sub(start.Time) < restartReset {
			failures, _ = strconv.Atoi(i.pod.Annotations[tappv1.AnnotationFailures])
			failures = max(0, failures)
		}
		if left := ending.Delay(failures) - c.now.Sub(end); left > 0 {
			c.waitFor(left)
			i.failures = failures + 1
			i.wait(reasonBackoff, n.text+"; the next one follows "+ending.Delay(failures).String()+" after its end")
			return
		}
		failures++
	}
	switch {
	case s.keepsClaim(i):
		i.failures = failures
		return
	case claims.waitFor(i):
		s.deleteCounted(c, i, failures, Action{Reason: termination.Reason, Why: n.text})
		return
	case len(i.pod.Finalizers) > 0:
		s.deleteCounted(c, i, failures, Action{Reason: n.reason, Why: n.text})
		return
	}
	i.failures = failures // the creation of the next one may fail
	if s.nodeUnrecorded(c, i) {
		return
	}
	if !s.mayCreate(c) {
		i.waitForNamespace()
		return
	}
	if !claims.createFor(i) {
		return
	}
	a := s.birth(c, i, OpReplace, failures, n.reason, n.text)
	a.Old = i.pod
	i.act(a)
}

// deleteCounted deletes a pod that ended and that the next one cannot follow at once.
// Between the two only the stored status knows how often the instance failed.
func (s *spec) deleteCounted(c *clock, i *instance, failures int, a Action) {
	i.failures, i.counted = failures, true
	if int(s.tapp.Status.Failures[i.name]) != failures {
		c.waitFor(recordDelay)
		i.wait("FailuresUnrecorded", "its pod ended, and goes when the status has how often the instance failed")
		return
	}
	s.delete(c, i, a)
}
