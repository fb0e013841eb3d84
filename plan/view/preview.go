package view

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/effect"
	"tkestack.io/tapp/plan/ids"
	plan "tkestack.io/tapp/plan/tapp"
	"tkestack.io/tapp/plan/unready"
)

// Phase is when a step of a rollout takes place.
type Phase string

// The phases, in their order.
const (
	// AtOnce spends no budget: creating, killing, scaling, resizing, relabelling.
	AtOnce Phase = "AtOnce"
	// Forced is within forceUpdate.maxUnavailable.
	Forced Phase = "Forced"
	// Rolling is within maxUnavailable.
	Rolling Phase = "Rolling"
	// Held is what the policy InPlaceOnly forbids, or a claim that is being deleted.
	Held Phase = "Held"
)

var phases = []Phase{AtOnce, Forced, Rolling, Held}

// Step of a rollout: the same effect on several instances, in ascending order of ids.
type Step struct {
	Phase  Phase         `json:"phase"`
	Effect effect.Effect `json:"effect"`
	IDs    []int         `json:"ids"`
	// AtMost is how many of them at a time; 0: all at once, or none.
	AtMost int `json:"atMost,omitempty"`
	// Budget is AtMost in words, such as 3 (30% of 10).
	Budget string `json:"budget,omitempty"`
	// NotServing are the ids of instances that do not serve already. They do not wait for
	// the budget.
	NotServing []int  `json:"notServing,omitempty"`
	Why        string `json:"why"`
}

// Preview is what happens to a TApp until its rollout ends.
type Preview struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Created: the TApp is not stored yet.
	Created bool `json:"created,omitempty"`
	// Changes of the spec.
	Changes []FieldChange `json:"changes"`
	// Steps in the order in which they happen.
	Steps []Step `json:"steps"`
	// Notes are what of it may surprise.
	Notes []string `json:"notes,omitempty"`
	// Paused: no update begins before the pause ends.
	Paused bool `json:"paused,omitempty"`
	// First are the actions of the controller's next plan.
	First []FirstAction `json:"first"`
	// Refused is what the API server refuses of what is done next, in its words.
	Refused string `json:"refused,omitempty"`
	// Problems of the spec.
	Problems []string `json:"problems,omitempty"`
}

// FirstAction is one action on the instances that share it.
type FirstAction struct {
	Op     plan.Op `json:"op"`
	IDs    []int   `json:"ids"`
	Reason string  `json:"reason"`
	Why    string  `json:"why"`
}

// ChangesSomething says whether anything would be different.
func (v *Preview) ChangesSomething() bool {
	return v.Created || len(v.Changes)+len(v.First) > 0 ||
		slices.ContainsFunc(v.Steps, func(s Step) bool { return s.Phase != Held })
}

// NewPreview tells what happens to the observed TApp. before is the stored one; nil if
// there is none.
func NewPreview(o *Observed, before *tappv1.TApp) (*Preview, error) {
	v := &Preview{Namespace: o.TApp.Namespace, Name: o.TApp.Name, Created: before == nil, Paused: o.TApp.Spec.Paused,
		Changes: []FieldChange{}, Steps: o.Steps(), Notes: o.Notes(before), First: o.firstActions(), Refused: o.Refused(), Problems: o.Problems()}
	if before != nil {
		changes, err := Changes("spec", before.Spec, o.TApp.Spec)
		if err != nil {
			return nil, err
		}
		v.Changes = append(v.Changes, slices.DeleteFunc(changes, isHashLabel)...)
	}
	return v, nil
}

// Problems of the spec, with their field paths.
func (o *Observed) Problems() []string {
	var out []string
	for _, p := range o.Plan.Problems {
		out = append(out, p.Field+": "+p.Why)
	}
	return out
}

// isHashLabel: admission stamps hashes into the labels of templates. They change with
// the template, which is told anyway.
func isHashLabel(c FieldChange) bool {
	return strings.HasSuffix(c.Path, ".labels["+tappv1.LabelTemplateHash+"]") || strings.HasSuffix(c.Path, ".labels["+tappv1.LabelUniqHash+"]")
}

// Steps of the rollout: first what spends no budget, then forced updates, then
// rolling ones, each in the order of the ids.
func (o *Observed) Steps() []Step {
	steps := []Step{}
	for _, c := range plan.Preview(o.Input) {
		groups := map[Phase]*Step{}
		for _, id := range c.IDs {
			p := o.phaseOf(c.Effect, id)
			s := groups[p]
			if s == nil {
				s = &Step{Phase: p, Effect: c.Effect, Why: c.Why}
				groups[p] = s
			}
			s.IDs = append(s.IDs, id)
			if i := o.Instance(id); (p == Forced || p == Rolling) && i != nil && !i.Serving && !isReadyOrphan(i) {
				s.NotServing = append(s.NotServing, id)
			}
		}
		for _, p := range phases {
			s := groups[p]
			if s == nil {
				continue
			}
			if p == Forced || p == Rolling {
				b := o.BudgetOf(p == Forced)
				s.AtMost, s.Budget = b.MaxUnavailable, b.String()
			}
			steps = append(steps, *s)
		}
	}
	slices.SortStableFunc(steps, func(a, b Step) int {
		return cmp.Or(cmp.Compare(slices.Index(phases, a.Phase), slices.Index(phases, b.Phase)), cmp.Compare(a.IDs[0], b.IDs[0]))
	})
	return steps
}

func (o *Observed) phaseOf(e effect.Effect, id int) Phase {
	switch e {
	case effect.Hold, effect.Wait:
		return Held
	case effect.UpdateInPlace, effect.Recreate:
		if i := o.Instance(id); i != nil && i.Forced {
			return Forced
		}
		return Rolling
	}
	return AtOnce
}

// isReadyOrphan says whether an instance serves by being adopted.
func isReadyOrphan(i *plan.Instance) bool {
	return i.Pod != nil && metav1.GetControllerOfNoCopy(i.Pod) == nil && unready.IsReady(i.Pod)
}

// firstActions are the actions of the plan. Those with the same operation, reason and
// sentence are one.
func (o *Observed) firstActions() []FirstAction {
	out := []FirstAction{}
	at := map[string]int{}
	for _, a := range o.Plan.Actions {
		key := string(a.Op) + "/" + a.Reason + "/" + a.Why
		n, known := at[key]
		if !known {
			n = len(out)
			at[key] = n
			out = append(out, FirstAction{Op: a.Op, Reason: a.Reason, Why: a.Why})
		}
		num, _ := strconv.Atoi(a.ID) // the planner's ids are numbers
		if !slices.Contains(out[n].IDs, num) {
			out[n].IDs = append(out[n].IDs, num)
		}
	}
	return out
}

// Sentence is that of admission's preview, and then when the step takes place.
func (s *Step) Sentence() string {
	text := effect.Change{Effect: s.Effect, IDs: s.IDs, Why: s.Why}.String()
	switch s.Phase {
	case Forced, Rolling:
		if len(s.NotServing) == len(s.IDs) {
			return text + "; at once, since they do not serve"
		}
		kind := "rolling"
		if s.Phase == Forced {
			kind = "by force"
		}
		text += fmt.Sprintf("; %s, at most %s at a time", kind, s.Budget)
		if len(s.NotServing) > 0 {
			text += fmt.Sprintf(", but %s at once, since they do not serve", ids.Ranges(s.NotServing))
		}
	case AtOnce, Held:
	}
	return text
}
