package tapp

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
)

// judgeReplicas bounds the number of instances.
func judgeReplicas(t *tappv1.TApp) field.ErrorList {
	path := field.NewPath("spec", "replicas")
	switch n := *t.Spec.Replicas; {
	case n < 0:
		return field.ErrorList{field.Invalid(path, n, "it is negative; give 0 or more")}
	case n > plan.MaxReplicas:
		return field.ErrorList{field.Invalid(path, n, fmt.Sprintf("one TApp can have %d instances; split it into several", plan.MaxReplicas))}
	}
	return nil
}
