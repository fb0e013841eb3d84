package tapp

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// Compute decides the next step for one TApp. It reads no clock, does no I/O and
// never mutates its input; equal inputs give equal plans.
//
// Bad data for one instance leaves that instance without an action and with a
// reason; it never stops the rest.
func Compute(in Input) Plan {
	d := decision{in: in, tapp: defaulted(in.TApp)}
	d.readSpec()
	d.observe()
	if d.tapp.DeletionTimestamp == nil {
		d.settleOwnership()
		d.removeUnwanted()
		d.followEnds()
		d.followClaims()
		d.createMissing()
		d.finishDeletions()
		d.rollOut()
		d.keepHistory()
		d.pruneTemplates()
	}
	d.findLostNodes()
	d.reportHeld()
	status := d.status() // also of the single instances; it may set the time of the next look
	return Plan{
		Actions:      d.actions(),
		History:      d.history,
		Status:       status,
		StatusPasses: isPassing(in.TApp, &status),
		Instances:    d.report(),
		Problems:     d.problems,
		Evidence:     slices.Sorted(d.evidence.all()),
		Wait:         d.wait,
	}
}

// decision is the working state of one Compute.
type decision struct {
	in   Input
	tapp *tappv1.TApp // defaulted; only the spec is a copy

	replicas int
	selector labels.Selector // nil: invalid
	// frozen is why no pod may be created or changed: the spec is invalid as a
	// whole. Stopped instances still go.
	frozen string
	templates
	budgets

	instances []*instance // ascending by id
	byID      map[int]*instance
	claims    map[string]*corev1.PersistentVolumeClaim // by name, whosoever
	own       []claim
	growing   []claim // that have not the size of their template yet
	problems  []Problem
	evidence  set
	// lostNodes is the evidence by which pods are deleted by force.
	lostNodes set
	// images says of pairs of references whether they mean the same image.
	images map[[2]string]bool
	// heldInPlace are the ids that policy InPlaceOnly keeps from their template.
	heldInPlace []int
	wait        time.Duration
	// openGate is the second write of every create.
	openGate []byte
	// revision is the name of the spec's revision, and history what is to be done
	// about revisions.
	revision string
	history  []Action
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

// readSpec turns the spec into what the steps work with, and notes its problems.
func (d *decision) readSpec() {
	d.replicas = d.readReplicas()
	d.selector = d.readSelector()
	d.readTemplates()
	d.readBudgets()
	d.checkIDs()
}

// waitFor makes the controller look again after this long at the latest.
func (d *decision) waitFor(after time.Duration) {
	// A condition's time has whole seconds, so that less is never worth a look.
	after = max(after, time.Millisecond)
	if d.wait == 0 || after < d.wait {
		d.wait = after
	}
}

// actions of all instances, in ascending order of ids.
func (d *decision) actions() []Action {
	var out []Action
	for _, i := range d.instances {
		out = append(out, i.actions...)
	}
	return out
}

// reportHeld notes the instances that no update can reach.
func (d *decision) reportHeld() {
	if len(d.heldInPlace) == 0 {
		return
	}
	slices.Sort(d.heldInPlace)
	d.problem(ReasonInPlaceOnly, "spec.updateStrategy.inPlaceUpdate.policy",
		"InPlaceOnly keeps instances %s from their template, which changed in more than images, labels and annotations; recreate them one by one with spec.statuses, or set InPlaceIfPossible", Ranges(d.heldInPlace))
}

func (d *decision) report() []Instance {
	out := make([]Instance, 0, len(d.instances))
	for _, i := range d.instances {
		if !i.wanted && i.pod == nil && !i.leftBehind {
			continue // of an instance that is no more, some claims were kept
		}
		out = append(out, Instance{
			ID: i.id, Template: i.templateName, Status: i.status, Pod: i.pod,
			Available: i.available, Current: i.current, Reason: i.reason, Why: i.why,
		})
	}
	return out
}

// ready returns the pod's Ready condition, or nil.
func ready(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodReady {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

func isReady(pod *corev1.Pod) bool {
	c := ready(pod)
	return c != nil && c.Status == corev1.ConditionTrue
}

func isFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// controls says whether the TApp is the controller of the pod.
func controls(t *tappv1.TApp, pod *corev1.Pod) bool {
	ref := metav1.GetControllerOfNoCopy(pod)
	return ref != nil && ref.UID == t.UID
}
