// Package view is what people are told of a TApp: its instances one by one, what
// happens to it until a rollout ends, and what changed from one version to the next.
// kubectl tapp prints it and the HTTP API serves it. It is pure: all of it is made of
// the planner's own decisions.
package view

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/ids"
	plan "tkestack.io/tapp/plan/tapp"
)

// Observed is a TApp with its plan.
type Observed struct {
	TApp *tappv1.TApp
	// Spec with the defaults.
	Spec  tappv1.TAppSpec
	Input plan.Input
	Plan  plan.Plan
	// byID and next are the instances and the actions of the plan, by instance id.
	byID map[int]*plan.Instance
	next map[string][]plan.Action
}

// Observe plans. The TApp is that of the input.
func Observe(in plan.Input) *Observed {
	t := in.TApp
	defaulted := t.DeepCopy()
	tappv1.Default(defaulted)
	if t.Spec.Selector == nil && t.Status.ScaleLabelSelector == "" && defaulted.Spec.Selector != nil {
		// The controller stores the selector before it does anything else. Nobody asks about
		// that step, so it counts as done.
		in.TApp = t.DeepCopy()
		in.TApp.Status.ScaleLabelSelector = metav1.FormatLabelSelector(defaulted.Spec.Selector)
	}
	o := &Observed{TApp: t, Spec: defaulted.Spec, Input: in, Plan: plan.Compute(in), byID: map[int]*plan.Instance{}, next: map[string][]plan.Action{}}
	for i := range o.Plan.Instances {
		o.byID[o.Plan.Instances[i].Num] = &o.Plan.Instances[i]
	}
	for _, a := range o.Plan.Actions {
		o.next[a.ID] = append(o.next[a.ID], a)
	}
	return o
}

// Instance returns what the plan says of an id, or nil.
func (o *Observed) Instance(id int) *plan.Instance { return o.byID[id] }

// Actions of the plan for an instance.
func (o *Observed) Actions(id string) []plan.Action { return o.next[id] }

// HasInstanceName says whether a name is <stem>-<instance id>.
func HasInstanceName(stem, name string) bool {
	id, ok := strings.CutPrefix(name, stem+"-")
	if !ok {
		return false
	}
	_, ok = ids.Parse(id)
	return ok
}
