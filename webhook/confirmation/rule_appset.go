package confirmation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// judgeAppSet rejects Confirmations for what there is not.
func judgeAppSet(g *gate) field.ErrorList {
	if g.owner == nil {
		return field.ErrorList{invalid("spec.appSet", fmt.Sprintf("there is no AppSet %[1]s in this namespace, and no AdvDeployment %[1]s that has a rollout of its own", g.confirmation.Spec.AppSet))}
	}
	return nil
}
