package confirmation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// judgeGate rejects Confirmations for a gate that does not wait.
//
// | field | has to be |
// |---|---|
// | spec.rollout | the id of the rollout |
// | spec.stage | a stage of it that is done and waits |
// | spec.token | the token that its gate has now |
func judgeGate(g *gate) field.ErrorList {
	spec, rollout := &g.confirmation.Spec, g.rollout
	if rollout == nil || rollout.ID == "" {
		return field.ErrorList{invalid("spec.rollout", fmt.Sprintf("%s %s has no rollout", g.owner.Kind, spec.AppSet))}
	}
	if rollout.ID != spec.Rollout {
		return field.ErrorList{invalid("spec.rollout", fmt.Sprintf("the rollout of %s %s is %s; a confirmation of another one opens nothing", g.owner.Kind, spec.AppSet, rollout.ID))}
	}
	for i := range rollout.Stages {
		stage := &rollout.Stages[i]
		switch {
		case stage.Name != spec.Stage:
		case stage.Token == "":
			return field.ErrorList{invalid("spec.stage", fmt.Sprintf("no gate waits after stage %s, which is: %s", stage.Name, stage.State))}
		case stage.Token != spec.Token:
			return field.ErrorList{invalid("spec.token", fmt.Sprintf("the gate after stage %s has another token: see status.rollout.stages[%s].token", stage.Name, stage.Name))}
		default:
			return nil
		}
	}
	return field.ErrorList{invalid("spec.stage", fmt.Sprintf("rollout %s has no stage %s that waits", rollout.ID, spec.Stage))}
}
