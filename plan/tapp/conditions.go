package tapp

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/evidence"
	"tkestack.io/tapp/plan/ids"
	"tkestack.io/tapp/plan/inplace"
	"tkestack.io/tapp/plan/message"
	"tkestack.io/tapp/plan/problem"
)

// isWaiting says whether an instance only waits for others, or for the user: it is
// not what is stuck.
func isWaiting(i *instance) bool {
	return i.reason == reasonBudget || i.reason == reasonTurn || i.reason == ReasonRoom || i.reason == reasonPaused || i.reason == reasonNotFinished
}

// tally of the instances, for the conditions.
type tally struct {
	desired, available, updated int
	left                        int // pods that are to go, or going
	claims                      int // instances whose claims are to go
	owners                      int // claims that do not follow whenDeleted yet
	restarts                    int // requested, and not begun
	completed, failed           int
	paused                      int
	infeasible                  bool      // claims can never grow as they are to
	held                        *instance // whose refusal is told; else the first that is stuck, or that waits
}

func (m *summary) tally() tally {
	var t tally
	for _, i := range m.instances {
		if i.desired() {
			t.desired++
			if i.available {
				t.available++
			}
			if i.updated {
				t.updated++
			}
			if i.state == alive && isRestartRequested(i.pod) {
				t.restarts++
			}
		} else if i.claimsLeft {
			t.claims++
		} else if i.pod != nil && i.state != foreign && !i.completed {
			t.left++
		}
		if i.completed {
			t.completed++
		}
		if i.status == tappv1.InstanceFailed {
			t.failed++
		}
		for a := range i.actions {
			if i.actions[a].Reason == reasonRetention {
				t.owners++
			}
		}
		if i.reason == reasonPaused {
			t.paused++
		}
	}
	t.held = m.firstHeld()
	return t
}

// firstHeld is the instance whose refusal is told; else the first that is stuck, or that waits.
func (m *summary) firstHeld() (held *instance) {
	if first, is := m.refused.First(); is {
		return find(m.instances, first.ID)
	}
	for _, i := range m.instances {
		if i.reason != "" && (held == nil || isWaiting(held) && !isWaiting(i)) {
			held = i
		}
	}
	return held
}

// conclude sets the conditions and the time of the last progress.
func (m *summary) conclude(s *tappv1.TAppStatus) {
	t := m.tally()
	rolledOut := t.available == t.desired && t.updated == t.desired
	if rolledOut {
		s.CurrentRevision = s.UpdateRevision
	}
	settled := rolledOut && t.left == 0 && t.claims == 0 && t.owners == 0 && t.restarts == 0 && len(m.growing) == 0
	progress := m.progress(&t)
	m.concludeReady(s, &t, settled, progress)
	m.concludeLost(s, settled)
	m.concludeGrowing(s)
	m.concludeInitImages(s)
	m.concludeRefused(s)

	late := m.isLate(s, &t, settled)
	switch {
	case settled:
		m.set(s, tappv1.ConditionProgressing, false, "Settled", "nothing is left to do"+m.kept)
	case late:
		m.set(s, tappv1.ConditionProgressing, false, reasonDeadline, progress)
	case t.paused > 0 && t.available == t.desired && t.left == 0:
		m.set(s, tappv1.ConditionProgressing, false, reasonPaused, progress)
	default:
		m.set(s, tappv1.ConditionProgressing, true, "Progressing", progress)
	}

	m.concludeStalled(s, &t, late, progress)
}

// concludeStalled sets the condition Stalled. Its reason is the first that holds, and its
// message tells of lost nodes whatever the reason is.
func (m *summary) concludeStalled(s *tappv1.TAppStatus, t *tally, late bool, progress string) {
	var reason string
	var why []string
	switch {
	case len(m.problems) > 0:
		p := problem.Gravest(m.problems)
		reason, why = p.Reason, []string{p.Field + ": " + p.Why}
		if more := len(m.problems) - 1; more > 0 {
			why[0] += fmt.Sprintf(" (and %d more)", more)
		}
	case t.infeasible:
		reason, why = "ResizeInfeasible", []string{progress}
	case len(m.lost.held) > 0:
		reason = ReasonNodeLost
	case late:
		reason = reasonDeadline
	default:
		m.set(s, tappv1.ConditionStalled, false, "NotStalled", "nothing is in the way")
		return
	}
	why = append(why, m.lost.held.Why(ids.Instances)...)
	if late && len(m.problems) == 0 && !t.infeasible {
		why = append(why, fmt.Sprintf("nothing moved for %d seconds: %s%s", *m.tapp.Spec.ProgressDeadlineSeconds, progress, m.alsoStuck(t.held)))
	}
	m.set(s, tappv1.ConditionStalled, true, reason, message.Join(why, evidence.Separator))
}

// concludeReady sets the condition Ready.
func (m *summary) concludeReady(s *tappv1.TAppStatus, t *tally, settled bool, progress string) {
	completed := fmt.Sprintf("%d of %d available, %d completed", t.available, t.desired+t.completed, t.completed)
	switch {
	case settled && t.failed > 0:
		m.set(s, tappv1.ConditionReady, false, "InstancesFailed", fmt.Sprintf("%s: %d instances failed, and stay as they ended", completed, t.failed))
	case settled && t.completed > 0:
		m.set(s, tappv1.ConditionReady, true, "Available", completed)
	case settled:
		m.set(s, tappv1.ConditionReady, true, "Available", fmt.Sprintf("all %d instances are available and follow their template", t.desired))
	default:
		m.set(s, tappv1.ConditionReady, false, "NotAvailable", progress)
	}
}

// progress tells in a sentence how far the instances are.
func (m *summary) progress(t *tally) string {
	progress := fmt.Sprintf("%d of %d instances are available, %d follow their template", t.available, t.desired, t.updated)
	if t.completed > 0 {
		progress += fmt.Sprintf(", %d completed", t.completed)
	}
	if t.left > 0 {
		progress += fmt.Sprintf("; pods that are to go: %d", t.left)
	}
	if t.claims > 0 {
		progress += fmt.Sprintf("; instances whose claims are to go: %d", t.claims)
	}
	if t.owners > 0 {
		progress += fmt.Sprintf("; claims that are to follow persistentVolumeClaimRetentionPolicy.whenDeleted: %d", t.owners)
	}
	if t.restarts > 0 {
		progress += fmt.Sprintf("; restarts that are to come: %d", t.restarts)
	}
	if len(m.growing) > 0 {
		var why string
		why, t.infeasible = whyGrowing(m.growing)
		progress += "; " + why
	}
	if t.held != nil {
		progress += fmt.Sprintf("; instance %s: %s", t.held.name, t.held.why)
	}
	return progress
}

// alsoStuck tells what the instances wait for that are stuck beside the first one:
// those with the same reason together, and only some if there are many reasons.
func (m *summary) alsoStuck(first *instance) string {
	var stuck ids.Whys
	for _, i := range m.instances {
		if i.reason != "" && i != first && !isWaiting(i) {
			stuck.Add(i.why, i.id)
		}
	}
	return stuck.Tail(4)
}

// isLate says whether nothing came closer to the spec for
// progressDeadlineSeconds, and keeps the time of the last progress: a new spec,
// a count that grew, or the moment at which a settled TApp was disturbed.
func (m *summary) isLate(s *tappv1.TAppStatus, t *tally, settled bool) bool {
	if settled || m.tapp.Spec.Paused && t.paused > 0 {
		return false
	}
	old := &m.stored.Status
	progressing := meta.FindStatusCondition(old.Conditions, tappv1.ConditionProgressing)
	atWork := progressing != nil && (progressing.Status == metav1.ConditionTrue || progressing.Reason == reasonDeadline)
	if !atWork || s.LastProgressTime == nil || old.ObservedGeneration != s.ObservedGeneration ||
		s.UpdatedReplicas > old.UpdatedReplicas || s.AvailableReplicas > old.AvailableReplicas || s.ReadyReplicas > old.ReadyReplicas ||
		t.left > 0 && s.Replicas < old.Replicas {
		now := metav1.NewTime(m.clock.now.Truncate(time.Second))
		s.LastProgressTime = &now
	}
	left := seconds(*m.tapp.Spec.ProgressDeadlineSeconds) - m.clock.now.Sub(s.LastProgressTime.Time)
	if left > 0 {
		m.clock.waitFor(left)
		return false
	}
	return true
}

func (m *summary) set(s *tappv1.TAppStatus, kind string, is bool, reason, text string) {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message.Bound(text),
		ObservedGeneration: m.tapp.Generation, LastTransitionTime: metav1.NewTime(m.clock.now.Truncate(time.Second))}
	if is {
		c.Status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&s.Conditions, c)
}

// concludeLost sets the condition ForceDeleted.
func (m *summary) concludeLost(s *tappv1.TAppStatus, settled bool) {
	if known := slices.Sorted(m.lost.evidence.all()); len(known) > 0 {
		// What is told already stays until its pods are gone: others follow then.
		told := m.told(tappv1.ConditionForceDeleted)
		first := slices.DeleteFunc(slices.Clone(known), func(e string) bool { return !slices.Contains(told, e) })
		others := slices.DeleteFunc(known, func(e string) bool { return slices.Contains(told, e) })
		m.set(s, tappv1.ConditionForceDeleted, true, ReasonNodeLost, message.Join(append(first, others...), evidence.Separator))
		return
	}
	if c := meta.FindStatusCondition(s.Conditions, tappv1.ConditionForceDeleted); c != nil && settled {
		m.set(s, tappv1.ConditionForceDeleted, false, "Recovered", c.Message)
	}
}

// concludeGrowing sets the condition ClaimsGrowing.
func (m *summary) concludeGrowing(s *tappv1.TAppStatus) {
	if len(m.growing) > 0 {
		why, _ := whyGrowing(m.growing)
		m.set(s, tappv1.ConditionClaimsGrowing, true, "TooSmall", why)
	} else if meta.FindStatusCondition(s.Conditions, tappv1.ConditionClaimsGrowing) != nil {
		m.set(s, tappv1.ConditionClaimsGrowing, false, "Grown", "every claim has the size of its template")
	}
}

// concludeInitImages sets the condition InitImagesBehind.
func (m *summary) concludeInitImages(s *tappv1.TAppStatus) {
	var behind ids.Whys
	for _, i := range m.instances {
		if i.state == alive {
			behind.Add(inplace.BehindInitImages(i.pod), i.id)
		}
	}
	if texts := behind.Texts(); len(texts) > 0 {
		m.set(s, tappv1.ConditionInitImagesBehind, true, "NextStart", message.Join(texts, "; "))
	} else if meta.FindStatusCondition(s.Conditions, tappv1.ConditionInitImagesBehind) != nil {
		m.set(s, tappv1.ConditionInitImagesBehind, false, "Ran", "every init container ran the image that its pod's spec names")
	}
}
