package tapp

import (
	"time"

	plan "tkestack.io/tapp/plan/tapp"
)

// terminatingAgain is for how long nothing is created for a TApp after the API server has
// said that its namespace is being deleted: each pod that goes would have the next one tried
// in vain. Never to try again would trust an API server that has not heard yet of a new
// namespace of that name.
const terminatingAgain = 30 * time.Second

// withoutCreations returns the other actions, and whether any was left out.
func withoutCreations(actions []plan.Action) (others []plan.Action, left bool) {
	for i := range actions {
		switch actions[i].Op {
		case plan.OpCreate, plan.OpReplace, plan.OpCreateClaim, plan.OpCreateRevision:
			left = true
		default:
			others = append(others, actions[i])
		}
	}
	return others, left
}
