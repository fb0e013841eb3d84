package plugin

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
)

// phase is when a step of a rollout takes place.
type phase string

// The phases, in their order.
const (
	// atOnce spends no budget: creating, killing, scaling, resizing, relabelling.
	atOnce phase = "AtOnce"
	// byForce is within forceUpdate.maxUnavailable.
	byForce phase = "Forced"
	// rolling is within maxUnavailable.
	rolling phase = "Rolling"
	// held is what the policy InPlaceOnly forbids.
	held phase = "Held"
)

var phases = []phase{atOnce, byForce, rolling, held}

// step of a rollout: the same effect on several instances, in ascending order of ids.
type step struct {
	Phase  phase       `json:"phase"`
	Effect plan.Effect `json:"effect"`
	IDs    []int       `json:"ids"`
	// AtMost is how many of them at a time; 0: all at once, or none.
	AtMost int    `json:"atMost,omitempty"`
	Budget string `json:"budget,omitempty"` // in words
	// Unavailable are the ids of instances that are not available already. They do not
	// wait for the budget.
	Unavailable []int  `json:"unavailable,omitempty"`
	Why         string `json:"why"`
}

// preview is what happens to a TApp until its rollout ends.
type preview struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Created: the TApp is not stored yet.
	Created bool `json:"created,omitempty"`
	// Changes of the spec.
	Changes []fieldChange `json:"changes"`
	// Steps in the order in which they happen.
	Steps []step `json:"steps"`
	// Paused: no update begins before the pause ends.
	Paused bool `json:"paused,omitempty"`
	// First are the actions of the controller's next plan.
	First []firstAction `json:"first"`
	// Problems of the spec.
	Problems []string `json:"problems,omitempty"`
	// note is on what the preview assumes.
	note string
}

// firstAction is one action on the instances that share it.
type firstAction struct {
	Op     plan.Op `json:"op"`
	IDs    []int   `json:"ids"`
	Reason string  `json:"reason"`
	Why    string  `json:"why"`
}

// changesSomething says whether anything would be different.
func (v *preview) changesSomething() bool {
	return v.Created || len(v.Changes)+len(v.First) > 0 ||
		slices.ContainsFunc(v.Steps, func(s step) bool { return s.Phase != held })
}

// newPreview tells what happens to the observed TApp. before is the stored one; nil if
// there is none.
func newPreview(o *observed, before *tappv1.TApp) (*preview, error) {
	v := &preview{Namespace: o.tapp.Namespace, Name: o.tapp.Name, Created: before == nil, Paused: o.tapp.Spec.Paused,
		Changes: []fieldChange{}, Steps: o.steps(), First: o.firstActions(), note: o.policyNote(o.plan.Instances)}
	if before != nil {
		changes, err := fieldChanges("spec", before.Spec, o.tapp.Spec)
		if err != nil {
			return nil, err
		}
		v.Changes = append(v.Changes, slices.DeleteFunc(changes, isHashLabel)...)
	}
	for _, p := range o.plan.Problems {
		v.Problems = append(v.Problems, p.Field+": "+p.Why)
	}
	return v, nil
}

// isHashLabel: admission stamps hashes into the labels of templates. They change with
// the template, which is told anyway.
func isHashLabel(c fieldChange) bool {
	return strings.HasSuffix(c.Path, ".labels["+tappv1.LabelTemplateHash+"]") || strings.HasSuffix(c.Path, ".labels["+tappv1.LabelUniqHash+"]")
}

// steps of the rollout: first what spends no budget, then forced updates, then
// rolling ones, each in the order of the ids.
func (o *observed) steps() []step {
	steps := []step{}
	for _, c := range plan.Preview(o.input) {
		groups := map[phase]*step{}
		for _, id := range c.IDs {
			p := o.phaseOf(c.Effect, id)
			s := groups[p]
			if s == nil {
				s = &step{Phase: p, Effect: c.Effect, Why: c.Why}
				groups[p] = s
			}
			s.IDs = append(s.IDs, id)
			if i := o.instance(id); (p == byForce || p == rolling) && i != nil && !i.Available {
				s.Unavailable = append(s.Unavailable, id)
			}
		}
		for _, p := range phases {
			s := groups[p]
			if s == nil {
				continue
			}
			if p == byForce || p == rolling {
				b := o.budget(p == byForce)
				s.AtMost, s.Budget = b.MaxUnavailable, b.String()
			}
			steps = append(steps, *s)
		}
	}
	slices.SortStableFunc(steps, func(a, b step) int {
		return cmp.Or(cmp.Compare(slices.Index(phases, a.Phase), slices.Index(phases, b.Phase)), cmp.Compare(a.IDs[0], b.IDs[0]))
	})
	return steps
}

func (o *observed) phaseOf(e plan.Effect, id int) phase {
	switch e {
	case plan.EffectHold:
		return held
	case plan.EffectUpdateInPlace, plan.EffectRecreate:
		if i := o.instance(id); i != nil && i.Forced {
			return byForce
		}
		return rolling
	}
	return atOnce
}

// firstActions are the actions of the plan. Those with the same operation, reason and
// sentence are one.
func (o *observed) firstActions() []firstAction {
	out := []firstAction{}
	at := map[string]int{}
	for _, a := range o.plan.Actions {
		key := string(a.Op) + "/" + a.Reason + "/" + a.Why
		n, known := at[key]
		if !known {
			n = len(out)
			at[key] = n
			out = append(out, firstAction{Op: a.Op, Reason: a.Reason, Why: a.Why})
		}
		if num := number(a.ID); !slices.Contains(out[n].IDs, num) {
			out[n].IDs = append(out[n].IDs, num)
		}
	}
	return out
}

// sentence is that of admission's preview, and then when the step takes place.
func (s *step) sentence() string {
	text := plan.Change{Effect: s.Effect, IDs: s.IDs, Why: s.Why}.String()
	switch s.Phase {
	case byForce, rolling:
		if len(s.Unavailable) == len(s.IDs) {
			return text + "; at once, since they are not available"
		}
		kind := "rolling"
		if s.Phase == byForce {
			kind = "by force"
		}
		text += fmt.Sprintf("; %s, at most %s at a time", kind, s.Budget)
		if len(s.Unavailable) > 0 {
			text += fmt.Sprintf(", but %s at once, since not available", plan.Ranges(s.Unavailable))
		}
	case atOnce, held:
	}
	return text
}
