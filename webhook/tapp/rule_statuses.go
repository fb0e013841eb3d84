package tapp

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/ids"
)

// noEffect are the statuses of tkestack/tapp's type that spec.statuses admits, and
// that do nothing there.
var noEffect = []tappv1.InstanceStatus{
	tappv1.InstanceNotCreated, tappv1.InstancePending, tappv1.InstanceUpdating, tappv1.InstancePodFailed, tappv1.InstancePodSucc,
	tappv1.InstanceKilling, tappv1.InstanceFailed, tappv1.InstanceSucc, tappv1.InstanceUnknown,
}

// judgeStatuses rejects unknown desired statuses. (So does the schema.)
func judgeStatuses(t *tappv1.TApp) field.ErrorList {
	var errs field.ErrorList
	for _, id := range sortedIDs(t.Spec.Statuses) {
		s := t.Spec.Statuses[id]
		if s != tappv1.InstanceKilled && s != tappv1.InstanceRunning && !slices.Contains(noEffect, s) {
			errs = append(errs, field.Invalid(field.NewPath("spec", "statuses").Key(id), string(s),
				"it is no status; Killed stops the instance, Running or no entry runs it"))
		}
	}
	return errs
}

// adviseStatuses warns of statuses that do nothing.
func adviseStatuses(t, _ *tappv1.TApp) []string {
	with := map[tappv1.InstanceStatus][]int{}
	for _, id := range sortedIDs(t.Spec.Statuses) {
		if num, ok := ids.Parse(id); ok {
			s := t.Spec.Statuses[id]
			with[s] = append(with[s], num)
		}
	}
	var out []string
	for _, s := range noEffect {
		if some := with[s]; len(some) > 0 {
			out = append(out, fmt.Sprintf("spec.statuses[%s]: %s has no effect; Killed stops an instance, Running or no entry runs it", ids.Ranges(some), s))
		}
	}
	return out
}
