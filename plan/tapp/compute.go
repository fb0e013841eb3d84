package tapp

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/deferral"
	"tkestack.io/tapp/plan/evidence"
	"tkestack.io/tapp/plan/growth"
	"tkestack.io/tapp/plan/ids"
	"tkestack.io/tapp/plan/kept"
	"tkestack.io/tapp/plan/problem"
	"tkestack.io/tapp/plan/prune"
	"tkestack.io/tapp/plan/revision"
)

// Compute decides the next step for one TApp. It reads no clock, does no I/O and
// never mutates its input; equal inputs give equal plans.
//
// Bad data for one instance leaves that instance without an action and with a
// reason; it never stops the rest.
func Compute(in Input) Plan {
	if in.TApp.Annotations[tappv1.AnnotationRestoring] != "" && in.TApp.DeletionTimestamp == nil {
		return Plan{Status: *in.TApp.Status.DeepCopy(), Refused: in.Refused}
	}
	c := &clock{now: in.Now}
	s := readSpec(in)
	claims := readClaims(s, &in)
	all := observe(s, c, in, claims)
	s.terminating = claims.inUse(all)
	own := revision.Own(s.tapp, in.Revisions)
	former := formerTemplates(in.RevisionsRead, own)

	h := history{revision: s.tapp.Status.UpdateRevision}
	var problems []Problem
	var growing []growth.Claim
	if s.tapp.DeletionTimestamp == nil {
		t := &turns{clock: c, batch: in.Policy.Batch}
		adoptAndRelease(s, all)
		followLosses(s, &in, former, all)
		removeUndesired(s, c, all)
		followEnds(s, c, claims, all)
		growing = followClaims(s, c, claims, all)
		createMissing(s, c, t, claims, all)
		problems = heldProblems(rollOut(s, c, t, s.newBench(&in, all), all))
		h = keepHistory(s, c, former, own, all)
		h.actions = append(h.actions, prune.Templates(s.tapp)...)
	} else {
		keepClaims(s, claims, all)
	}
	lost := followTerminating(s, c, &in, all)
	problems = slices.Concat(s.problems, problems)
	refused := tellRefused(s, &in, all)

	status := (&summary{spec: s, clock: c, instances: all, growing: growing, kept: claims.kept(), lost: lost, problems: problems, refused: refused, untried: in.Refused == nil && len(s.triedInVain) == 0}).status(h.revision)
	return Plan{
		Actions:          actions(all),
		History:          h.actions,
		Status:           status,
		StatusDeferrable: deferral.Allows(in.TApp, &status),
		Instances:        report(s, all),
		Desired:          count(all, (*instance).desired),
		Budgets:          s.budgetsOf(count(all, (*instance).desired)),
		Problems:         problems,
		Refused:          refused,
		Terminating:      s.terminating.All(),
		Evidence:         evidence.Order(lost.unread.all(), s.told(tappv1.ConditionForceDeleted), in.NodesAfter),
		NeedsRevisions:   former == nil && (h.unread || count(all, (*instance).isUnread) > 0),
		Workloads:        slices.Sorted(claims.unread.all()),
		Wait:             c.wait,
	}
}

// clock is the time of the decision, and after how long time alone may change it.
type clock struct {
	now  time.Time
	wait time.Duration // 0: it cannot
}

// waitFor makes the controller look again after this long at the latest.
func (c *clock) waitFor(after time.Duration) {
	// A condition's time has whole seconds, so that less is never worth a look.
	after = max(after, time.Millisecond)
	if c.wait == 0 || after < c.wait {
		c.wait = after
	}
}

// defaulted applies the defaults to a copy. Only what they write to is copied, and
// nothing else is ever written to: the templates are most of a large spec.
func defaulted(t *tappv1.TApp) *tappv1.TApp {
	out := *t
	out.Spec.Selector = t.Spec.Selector.DeepCopy()
	out.Spec.PersistentVolumeClaimRetentionPolicy = t.Spec.PersistentVolumeClaimRetentionPolicy.DeepCopy()
	tappv1.Default(&out)
	return &out
}

// actions of all instances, in ascending order of ids.
func actions(all []*instance) []Action {
	var out []Action
	for _, i := range all {
		out = append(out, i.actions...)
	}
	return out
}

// heldProblems tells of the instances that no update can reach.
func heldProblems(held []int) []Problem {
	if len(held) == 0 {
		return nil
	}
	slices.Sort(held)
	return []Problem{problem.New(problem.Updates, ReasonInPlaceOnly, "spec.updateStrategy.inPlaceUpdate.policy",
		"InPlaceOnly keeps instances %s from their template, which changed in more than images, labels and annotations; recreate them one by one with spec.statuses, or set InPlaceIfPossible", ids.Ranges(held))}
}

// report is what the plan says of each instance.
func report(s *spec, all []*instance) []Instance {
	out := make([]Instance, 0, len(all))
	for _, i := range all {
		if !i.inRange && i.pod == nil && !i.claimsLeft {
			continue // only claims that are kept are left of it
		}
		out = append(out, Instance{
			ID: i.name, Num: i.id, Template: i.templateName, Status: i.status, Pod: i.pod,
			Desired: i.desired(), Forced: s.isForced(i), Serving: i.needsRoom(), Available: i.available, Current: i.updated, Kept: i.state == alive && !i.updated && kept.IsKept(i.pod), Reason: i.reason, Why: i.why,
		})
	}
	return out
}

func count(all []*instance, is func(*instance) bool) (n int) {
	for _, i := range all {
		if is(i) {
			n++
		}
	}
	return n
}

func isEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// controls says whether the TApp is the controller of the pod.
func controls(t *tappv1.TApp, pod *corev1.Pod) bool {
	ref := metav1.GetControllerOfNoCopy(pod)
	return ref != nil && ref.UID == t.UID
}
