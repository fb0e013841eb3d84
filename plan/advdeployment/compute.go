package advdeployment

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
	"tkestack.io/tapp/plan/rollout"
)

// Compute decides the next step for one AdvDeployment. It never mutates its input; equal
// inputs give equal plans.
func Compute(in Input) Plan {
	if in.AdvDeployment.Annotations[v1beta1.AnnotationRestoring] != "" && in.AdvDeployment.DeletionTimestamp == nil {
		return Plan{Status: *in.AdvDeployment.Status.DeepCopy()}
	}
	d := in.AdvDeployment.DeepCopy()
	v1beta1.DefaultAdvDeployment(d)
	c := &computation{in: in, d: d, children: map[Child]*unstructured.Unstructured{}}
	for _, o := range in.Children {
		c.children[Child{Kind(o.GetKind()), o.GetName()}] = o
	}
	if d.DeletionTimestamp != nil {
		return c.leave()
	}
	if c.finalize() {
		return Plan{Actions: c.actions, Status: d.Status, Moving: true}
	}
	units, _, problems := podset.Placed(d)
	for _, p := range problems {
		c.stalls = append(c.stalls, stall{reason: v1beta1.ReasonInvalid, message: p.Field + ": " + p.Why})
	}
	c.invalid = len(problems) > 0
	if !c.invalid {
		c.roll(units)
		c.converge(units)
	}
	return c.conclude()
}

// computation is a plan in the making.
type computation struct {
	in       Input
	d        *v1beta1.AdvDeployment // with defaults
	children map[Child]*unstructured.Unstructured

	invalid  bool
	units    []unit
	leftOver []Child // ours, and not asked for any more
	actions  []Action
	releases []ReleasePlan
	rolling  *progression // nil: an AppSet decides how the podSets change
	keep     *podset.Keep
	obsolete []*appsv1.ControllerRevision
	stalls   []stall
	waits    []string // what is on its way
	notes    []string // what is worth a word when all is well
	taken    bool     // a child's name is
	unseen   bool     // a child is not written yet, or its own controller has not looked at it
}

// unit is a podSet with the child that it has become.
type unit struct {
	podset.Unit
	placed   *v1beta1.PlacedPodSet
	child    Child
	have     *unstructured.Unstructured // ours; nil: there is none
	upToDate bool                       // it is as the AdvDeployment says
	numbers  numbers
	verdict  *rollout.Verdict // of the rollout that is decided here; nil: of none
	// hindrance is the first thing that its child or release waits for, or that is in its way; no
	// message: its numbers tell all.
	hindrance stall
}

// stall is something that needs help.
type stall struct {
	reason, message string
	event           *Event
}

// finalize adds the finalizer by which a deleted AdvDeployment waits for its children. True: it
// is missing, and is written before anything else.
func (c *computation) finalize() bool {
	finalizers := slices.DeleteFunc(slices.Clone(c.d.Finalizers), func(f string) bool { return f == v1beta1.LegacyFinalizer })
	if !slices.Contains(finalizers, v1beta1.Finalizer) {
		finalizers = append(finalizers, v1beta1.Finalizer)
	}
	if slices.Equal(finalizers, c.d.Finalizers) {
		return false
	}
	c.setFinalizers(finalizers, false, "the children go before the AdvDeployment does")
	return true
}

func (c *computation) setFinalizers(finalizers []string, absent bool, why string) {
	c.actions = append(c.actions, Action{Op: Finalize, UID: c.d.UID, Version: c.d.ResourceVersion, Finalizers: finalizers, Absent: absent, Why: why})
}

// leave deletes the children of an AdvDeployment that is being deleted, and then removes the
// finalizer. If the deletion orphans the children, the garbage collector releases them.
func (c *computation) leave() Plan {
	status := *c.d.Status.DeepCopy()
	if !slices.Contains(c.d.Finalizers, v1beta1.Finalizer) {
		return Plan{Status: status}
	}
	left := 0
	if !slices.Contains(c.d.Finalizers, metav1.FinalizerOrphanDependents) {
		for _, child := range c.ours() {
			left++
			o := c.children[child]
			if o.GetDeletionTimestamp() == nil {
				c.remove(child, o, "its AdvDeployment is being deleted")
			}
			if why, refused := c.in.Refused[child]; refused {
				c.refused(child, why)
			}
			c.waits = append(c.waits, fmt.Sprintf("%s is being deleted", child))
		}
	}
	left += c.uninstall()
	if left == 0 {
		ours := func(f string) bool { return f == v1beta1.Finalizer }
		c.setFinalizers(slices.DeleteFunc(slices.Clone(c.d.Finalizers), ours), true, "no child is left")
	}
	return c.conclude()
}

// ours are the children that are ours, in a fixed order.
func (c *computation) ours() (out []Child) {
	for child, o := range c.children {
		if c.isOurs(o) {
			out = append(out, child)
		}
	}
	slices.SortFunc(out, func(a, b Child) int { return strings.Compare(string(a.Kind)+"/"+a.Name, string(b.Kind)+"/"+b.Name) })
	return out
}

// isOurs says whether this very AdvDeployment controls the object.
func (c *computation) isOurs(o metav1.Object) bool {
	owner := metav1.GetControllerOf(o)
	return owner != nil && owner.UID == c.d.UID
}

func (c *computation) remove(child Child, o metav1.Object, why string) {
	c.actions = append(c.actions, Action{Op: Delete, Child: child, UID: o.GetUID(), Version: o.GetResourceVersion(), Why: why})
}
