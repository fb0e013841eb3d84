package confirmation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// judgeAppSet rejects Confirmations for an AppSet that there is not.
func judgeAppSet(g *gate) field.ErrorList {
	if g.app == nil {
		return field.ErrorList{invalid("spec.appSet", fmt.Sprintf("there is no AppSet %s in this namespace", g.confirmation.Spec.AppSet))}
	}
	return nil
}
