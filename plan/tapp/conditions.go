package tapp

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/condition"
	"tkestack.io/tapp/plan/evidence"
	"tkestack.io/tapp/plan/growth"
	"tkestack.io/tapp/plan/ids"
	"tkestack.io/tapp/plan/inplace"
	"tkestack.io/tapp/plan/message"
	"tkestack.io/tapp/plan/problem"
	"tkestack.io/tapp/plan/tally"
	"tkestack.io/tapp/plan/template"
)

// isWaiting says whether an instance only waits for others, or for the user: it is
// not what is stuck.
func isWaiting(i *instance) bool {
	return i.reason == reasonBudget || i.reason == reasonTurn || i.reason == ReasonRoom || i.reason == reasonPaused || i.reason == reasonNotFinished
}

// counted are the instances, for the conditions.
type counted struct {
	tally.Tally
	infeasible bool      // claims can never grow as they are to
	held       *instance // whose refusal is told; else the first that is stuck, or that waits
	kept       *instance // the first that only somebody takes further: its claim is being deleted, or its image differs
	goesOn     bool      // others are on their way
}

func (m *summary) count() counted {
	t := counted{Tally: tally.Tally{Deleting: m.tapp.DeletionTimestamp != nil}}
	for _, i := range m.instances {
		if i.desired() {
			t.Desired++
			if i.available {
				t.Available++
			}
			if i.updated && i.differs == "" {
				t.Updated++
			}
			if i.state == alive && isRestartRequested(i.pod) {
				t.Restarts++
			}
		} else if i.claimsLeft {
			t.Claims++
		} else if i.pod != nil && i.state != foreign && !i.completed {
			t.Left++
		}
		for a := range i.actions {
			if i.actions[a].Reason == reasonRetention {
				t.Owners++
			}
		}
		switch {
		case !m.isKept(i):
			t.goesOn = t.goesOn || i.isUnderWay()
		case t.kept == nil:
			t.kept = i
		}
	}
	t.Completed = count(m.instances, func(i *instance) bool { return i.completed })
	t.Failed = count(m.instances, func(i *instance) bool { return i.status == tappv1.InstanceFailed })
	t.Paused = count(m.instances, func(i *instance) bool { return i.reason == reasonPaused })
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
	t := m.count()
	rolledOut := t.Available == t.Desired && t.Updated == t.Desired
	if rolledOut {
		s.CurrentRevision = s.UpdateRevision
	}
	settled := rolledOut && t.Left == 0 && t.Claims == 0 && t.Owners == 0 && t.Restarts == 0 && len(m.growing) == 0
	progress := m.progress(&t)
	t.Differs = t.kept != nil && !t.goesOn && t.kept.reason == template.ReasonImageDiffers
	is, reason, text := t.Ready(settled, progress)
	m.set(s, tappv1.ConditionReady, is, reason, text)
	m.concludeLost(s, settled)
	m.concludeGrowing(s)
	m.concludeInitImages(s)
	m.concludeRefused(s)
	m.concludeTerminating(s)

	late := m.isLate(s, &t, settled)
	switch {
	case settled:
		m.set(s, tappv1.ConditionProgressing, false, "Settled", "nothing is left to do"+m.kept)
	case late:
		m.set(s, tappv1.ConditionProgressing, false, reasonDeadline, progress)
	case t.Paused > 0 && t.Available == t.Desired && t.Left == 0:
		m.set(s, tappv1.ConditionProgressing, false, reasonPaused, progress)
	default:
		m.set(s, tappv1.ConditionProgressing, true, "Progressing", progress)
	}

	m.concludeStalled(s, &t, late, progress)
}

// concludeStalled sets the condition Stalled. Its reason is the first that holds, and its
// message tells of lost nodes whatever the reason is.
func (m *summary) concludeStalled(s *tappv1.TAppStatus, t *counted, late bool, progress string) {
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
	case t.kept != nil && !t.goesOn:
		reason, why = t.kept.reason, m.whyKept(t.kept.reason)
	case late:
		reason = reasonDeadline
	default:
		m.set(s, tappv1.ConditionStalled, false, "NotStalled", "nothing is in the way")
		return
	}
	why = append(why, m.lost.held.Why(ids.Instances)...)
	if late && len(m.problems) == 0 && !t.infeasible && (t.kept == nil || reason != t.kept.reason) {
		why = append(why, fmt.Sprintf("nothing moved for %d seconds: %s%s", *m.tapp.Spec.ProgressDeadlineSeconds, progress, m.alsoStuck(t.held)))
	}
	m.set(s, tappv1.ConditionStalled, true, reason, message.Join(why, evidence.Separator))
}

// progress tells in a sentence how far the instances are.
func (m *summary) progress(t *counted) string {
	var growing, held string
	if len(m.growing) > 0 {
		growing, t.infeasible = growth.Why(m.growing)
	}
	if t.held != nil {
		held = fmt.Sprintf("instance %s: %s", t.held.name, t.held.why)
	}
	return t.Progress(growing, held)
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
func (m *summary) isLate(s *tappv1.TAppStatus, t *counted, settled bool) bool {
	if settled || m.tapp.Spec.Paused && t.Paused > 0 {
		return false
	}
	old := &m.stored.Status
	progressing := meta.FindStatusCondition(old.Conditions, tappv1.ConditionProgressing)
	atWork := progressing != nil && (progressing.Status == metav1.ConditionTrue || progressing.Reason == reasonDeadline)
	if !atWork || s.LastProgressTime == nil || old.ObservedGeneration != s.ObservedGeneration ||
		s.UpdatedReplicas > old.UpdatedReplicas || s.AvailableReplicas > old.AvailableReplicas || s.ReadyReplicas > old.ReadyReplicas ||
		t.Left > 0 && s.Replicas < old.Replicas {
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
	w := condition.Writer{Conditions: &s.Conditions, Generation: m.tapp.Generation, Now: m.clock.now.Truncate(time.Second)}
	w.Set(kind, condition.StatusOf(is), reason, text)
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
		why, _ := growth.Why(m.growing)
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
