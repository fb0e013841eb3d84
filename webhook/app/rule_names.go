package app

import (
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appv1 "tkestack.io/tapp/crd/app/v1"
)

// judgeNames requires DNS labels for the names of the children: a Service's name is
// a host name, and the names of a Deployment's pods begin with its name.
func judgeNames(a *appv1.App) field.ErrorList {
	var errs field.ErrorList
	for _, n := range []struct {
		path *field.Path
		name string
	}{
		{deploymentPath("name"), a.Spec.DeploymentTemplate.Name},
		{field.NewPath("spec", "serviceTemplate", "name"), a.Spec.ServiceTemplate.Name},
	} {
		if n.name != "" && len(validation.IsDNS1123Label(n.name)) > 0 {
			errs = append(errs, field.Invalid(n.path, n.name,
				"it is no DNS label; give lower case letters, digits and dashes, at most 63, with a letter or a digit at either end"))
		}
	}
	return errs
}
