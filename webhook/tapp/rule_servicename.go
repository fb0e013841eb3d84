package tapp

import (
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// judgeServiceName rejects a name that does not fit into the DNS names of pods.
func judgeServiceName(t *tappv1.TApp) field.ErrorList {
	name := t.Spec.ServiceName
	if name == "" || len(validation.IsDNS1123Label(name)) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "serviceName"), name,
		"it is no name of a Service; give the name of a headless Service of this namespace: lower case letters, digits and dashes, at most 63")}
}
