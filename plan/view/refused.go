package view

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/refusal"
	plan "tkestack.io/tapp/plan/tapp"
)

// Refused is what the API server refuses the controller, in its words, as the stored
// condition has it; empty: nothing, or nothing that the plan wants still. It is about what
// was tried so far, and not about a change that is foreseen.
func (o *Observed) Refused() string {
	c := meta.FindStatusCondition(o.TApp.Status.Conditions, tappv1.ConditionReplicaFailure)
	if c == nil || c.Status != metav1.ConditionTrue || len(refusal.Stored(o.TApp.Status.Conditions)) > 0 && len(o.Plan.Refused) == 0 {
		return ""
	}
	return c.Reason + ": " + c.Message
}

// Concerns says whether what is refused is what is done next for an instance, too.
func (o *Observed) Concerns(i *plan.Instance) bool {
	c := meta.FindStatusCondition(o.TApp.Status.Conditions, tappv1.ConditionReplicaFailure)
	return o.Refused() != "" && (i.Reason == c.Reason || slices.ContainsFunc(o.Actions(i.ID), func(a plan.Action) bool { return refusal.ReasonOf(string(a.Op)) == c.Reason }))
}
