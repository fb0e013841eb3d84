package tapp

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/inplace"
)

const (
	reasonDeadline = "ProgressDeadlineExceeded"
	reasonPaused   = "Paused"
	reasonBudget   = "WaitsForBudget"
	reasonTurn     = "WaitsForTurn"

	reasonNotFinished = "AppNotFinished"
)

// status says what was observed. What the plan is about to do does not count:
// it may fail.
func (d *decision) status() tappv1.TAppStatus {
	old := &d.in.TApp.Status
	s := tappv1.TAppStatus{
		ObservedGeneration: d.tapp.Generation,
		CurrentRevision:    cmp.Or(old.CurrentRevision, d.revision),
		UpdateRevision:     cmp.Or(d.revision, old.UpdateRevision),
		CollisionCount:     old.CollisionCount,
		LastProgressTime:   old.LastProgressTime,
		Nodes:              d.nodes(),
		Statuses:           make(map[string]tappv1.InstanceStatus, len(d.instances)),
		Conditions:         slices.Clone(old.Conditions),
	}
	if d.selector != nil {
		// The string form is what keeps a selector that spec does not state.
		s.ScaleLabelSelector = d.selector.String()
	} else {
		s.ScaleLabelSelector = old.ScaleLabelSelector
	}
	for _, i := range d.instances {
		i.status = d.statusOf(i)
		if i.wanted || i.pod != nil || i.leftBehind {
			s.Statuses[i.id] = i.status
		}
		d.count(&s, i)
	}
	s.AppStatus = appStatus(s.Statuses)
	d.conclude(&s)
	return s
}

func (d *decision) count(s *tappv1.TAppStatus, i *instance) {
	if i.state != alive && i.state != dying && i.state != stray || isFinished(i.pod) {
		return
	}
	s.Replicas++
	if isReady(i.pod) {
		s.ReadyReplicas++
	}
	if i.available {
		s.AvailableReplicas++
	}
	if i.current {
		s.UpdatedReplicas++
	}
}

// statusOf is the state of one instance, in the words of the original.
func (d *decision) statusOf(i *instance) tappv1.InstanceStatus {
	switch i.state {
	case missing, foreign, adoptee:
		switch {
		case i.leftBehind:
			return tappv1.InstanceKilling
		case i.stopped:
			return tappv1.InstanceKilled
		case i.completed:
			return d.tapp.Status.Statuses[i.id]
		}
		return tappv1.InstanceNotCreated
	case dying:
		if i.completed {
			return d.tapp.Status.Statuses[i.id]
		}
		return tappv1.InstanceKilling
	case finished:
		end := endOf(i.pod)
		switch {
		case !i.wanted || i.stopped:
			// It goes because the spec says so. As an end it would be remembered, and an
			// instance that is started again at once would stay down.
			return tappv1.InstanceKilling
		case i.completed:
			return end
		case end == tappv1.InstanceFailed:
			return tappv1.InstancePodFailed
		}
		return tappv1.InstancePodSucc
	}
	switch i.pod.Status.Phase {
	case corev1.PodPending, corev1.PodRunning, "":
		switch {
		case inplace.GateClosed(i.pod), i.updating && !inplace.HasGate(i.pod):
			return tappv1.InstanceUpdating
		case i.pod.Status.Phase == corev1.PodRunning && isReady(i.pod):
			return tappv1.InstanceRunning
		}
		return tappv1.InstancePending
	}
	return tappv1.InstanceUnknown
}

func appStatus(statuses map[string]tappv1.InstanceStatus) tappv1.AppStatus {
	counts := map[tappv1.InstanceStatus]int{}
	for _, s := range statuses {
		counts[s]++
	}
	failed, succ, killed := counts[tappv1.InstanceFailed], counts[tappv1.InstanceSucc], counts[tappv1.InstanceKilled]
	switch {
	case len(statuses) == 0:
		return tappv1.AppPending
	case failed+succ+killed < len(statuses):
		return tappv1.AppRunning
	case failed > 0:
		return tappv1.AppFailed
	case succ > 0:
		return tappv1.AppSucc
	}
	return tappv1.AppKilled
}

// nodes is where the instances of a TApp with neverMigrate have run: the first
// node that was seen, for ever.
func (d *decision) nodes() map[string]string {
	if !d.tapp.Spec.NeverMigrate {
		return nil
	}
	out := maps.Clone(d.tapp.Status.Nodes)
	for _, i := range d.instances {
		if i.pod == nil || i.state == foreign || i.state == adoptee || i.pod.Spec.NodeName == "" || out[i.id] != "" {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[i.id] = i.pod.Spec.NodeName
	}
	return out
}

// isWaiting says whether an instance only waits for others, or for the user: it is
// not what is stuck.
func isWaiting(i *instance) bool {
	return i.reason == reasonBudget || i.reason == reasonTurn || i.reason == reasonPaused || i.reason == reasonNotFinished
}

// tally of the instances, for the conditions.
type tally struct {
	wanted, available, current int
	left                       int // pods that are to go, or going
	claims                     int // instances whose claims are to go
	restarts                   int // requested, and not begun
	failed                     int
	paused                     int
	held                       *instance // the first that is stuck, or else that waits
}

func (d *decision) tally() tally {
	var t tally
	for _, i := range d.instances {
		if i.running() {
			t.wanted++
			if i.available {
				t.available++
			}
			if i.current {
				t.current++
			}
			if i.state == alive && isRestartRequested(i.pod) {
				t.restarts++
			}
		} else if i.leftBehind {
			t.claims++
		} else if i.pod != nil && i.state != foreign && !i.completed {
			t.left++
		}
		if i.status == tappv1.InstanceFailed {
			t.failed++
		}
		if i.reason == reasonPaused {
			t.paused++
		}
		if i.reason != "" && (t.held == nil || isWaiting(t.held) && !isWaiting(i)) {
			t.held = i
		}
	}
	return t
}

// conclude sets the conditions and the time of the last progress.
func (d *decision) conclude(s *tappv1.TAppStatus) {
	t := d.tally()
	rolledOut := t.available == t.wanted && t.current == t.wanted
	if rolledOut {
		s.CurrentRevision = s.UpdateRevision
	}
	settled := rolledOut && t.left == 0 && t.claims == 0 && t.restarts == 0 && len(d.growing) == 0
	progress, infeasible := d.progress(&t)
	d.concludeReady(s, &t, settled, progress)
	d.concludeLost(s, settled)

	late := d.isLate(s, &t, settled)
	switch {
	case settled:
		d.set(s, tappv1.ConditionProgressing, false, "Settled", "nothing is left to do")
	case late:
		d.set(s, tappv1.ConditionProgressing, false, reasonDeadline, progress)
	case t.paused > 0 && t.available == t.wanted && t.left == 0:
		d.set(s, tappv1.ConditionProgressing, false, reasonPaused, progress)
	default:
		d.set(s, tappv1.ConditionProgressing, true, "Progressing", progress)
	}

	switch {
	case len(d.problems) > 0:
		p := d.problems[0]
		message := p.Field + ": " + p.Why
		if more := len(d.problems) - 1; more > 0 {
			message += fmt.Sprintf(" (and %d more)", more)
		}
		d.set(s, tappv1.ConditionStalled, true, p.Reason, message)
	case infeasible:
		d.set(s, tappv1.ConditionStalled, true, "ResizeInfeasible", progress)
	case late:
		d.set(s, tappv1.ConditionStalled, true, reasonDeadline,
			fmt.Sprintf("nothing moved for %d seconds: %s%s", *d.tapp.Spec.ProgressDeadlineSeconds, progress, d.alsoStuck(t.held)))
	default:
		d.set(s, tappv1.ConditionStalled, false, "NotStalled", "nothing is in the way")
	}
}

// concludeReady sets the condition Ready.
func (d *decision) concludeReady(s *tappv1.TAppStatus, t *tally, settled bool, progress string) {
	switch {
	case settled && t.failed > 0:
		d.set(s, tappv1.ConditionReady, false, "InstancesFailed", fmt.Sprintf("%d instances failed, and stay as they ended", t.failed))
	case settled:
		d.set(s, tappv1.ConditionReady, true, "Available", fmt.Sprintf("all %d instances are available and follow their template", t.wanted))
	default:
		d.set(s, tappv1.ConditionReady, false, "NotAvailable", progress)
	}
}

// progress tells in a sentence how far the instances are, and whether claims can
// never grow as they are to.
func (d *decision) progress(t *tally) (progress string, infeasible bool) {
	progress = fmt.Sprintf("%d of %d instances are available, %d follow their template", t.available, t.wanted, t.current)
	if t.left > 0 {
		progress += fmt.Sprintf("; pods that are to go: %d", t.left)
	}
	if t.claims > 0 {
		progress += fmt.Sprintf("; instances whose claims are to go: %d", t.claims)
	}
	if t.restarts > 0 {
		progress += fmt.Sprintf("; restarts that are to come: %d", t.restarts)
	}
	if len(d.growing) > 0 {
		var why string
		why, infeasible = d.whyGrowing()
		progress += fmt.Sprintf("; claims that are to grow: %d, %s", len(d.growing), why)
	}
	if t.held != nil {
		progress += fmt.Sprintf("; instance %s: %s", t.held.id, t.held.why)
	}
	return progress, infeasible
}

// alsoStuck tells what the instances wait for that are stuck beside the first one:
// those with the same reason together, and only some if there are many reasons.
func (d *decision) alsoStuck(first *instance) string {
	const most = 4
	var whys []string
	ids := map[string][]int{}
	for _, i := range d.instances {
		if i.reason == "" || i == first || isWaiting(i) {
			continue
		}
		if ids[i.why] == nil {
			whys = append(whys, i.why)
		}
		ids[i.why] = append(ids[i.why], i.num)
	}
	var b strings.Builder
	for n, why := range whys {
		if n == most {
			fmt.Fprintf(&b, "; and %d reasons more", len(whys)-most)
			break
		}
		noun := "instances"
		if len(ids[why]) == 1 {
			noun = "instance"
		}
		fmt.Fprintf(&b, "; %s %s: %s", noun, Ranges(ids[why]), why)
	}
	return b.String()
}

// isLate says whether nothing came closer to the spec for
// progressDeadlineSeconds, and keeps the time of the last progress: a new spec,
// a count that grew, or the moment at which a settled TApp was disturbed.
func (d *decision) isLate(s *tappv1.TAppStatus, t *tally, settled bool) bool {
	if settled || d.tapp.Spec.Paused && t.paused > 0 {
		return false
	}
	old := &d.in.TApp.Status
	progressing := meta.FindStatusCondition(old.Conditions, tappv1.ConditionProgressing)
	atWork := progressing != nil && (progressing.Status == metav1.ConditionTrue || progressing.Reason == reasonDeadline)
	if !atWork || s.LastProgressTime == nil || old.ObservedGeneration != s.ObservedGeneration ||
		s.UpdatedReplicas > old.UpdatedReplicas || s.AvailableReplicas > old.AvailableReplicas || s.ReadyReplicas > old.ReadyReplicas ||
		t.left > 0 && s.Replicas < old.Replicas {
		now := metav1.NewTime(d.in.Now.Truncate(time.Second))
		s.LastProgressTime = &now
	}
	left := seconds(*d.tapp.Spec.ProgressDeadlineSeconds) - d.in.Now.Sub(s.LastProgressTime.Time)
	if left > 0 {
		d.waitFor(left)
		return false
	}
	return true
}

func (d *decision) set(s *tappv1.TAppStatus, kind string, is bool, reason, message string) {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message,
		ObservedGeneration: d.tapp.Generation, LastTransitionTime: metav1.NewTime(d.in.Now.Truncate(time.Second))}
	if is {
		c.Status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&s.Conditions, c)
}
