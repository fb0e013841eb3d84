package app

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	appv1 "tkestack.io/tapp/crd/app/v1"
)

// judgeDuplicates rejects a port or a variable that comes twice: server-side apply
// goes by their keys, and cannot write a Deployment with two of one key.
func judgeDuplicates(a *appv1.App) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	once := func(path *field.Path, key, what string) {
		if seen[key] {
			errs = append(errs, field.Duplicate(path, what))
		}
		seen[key] = true
	}
	t := &a.Spec.DeploymentTemplate
	for i, p := range t.Ports {
		key := fmt.Sprintf("%d/%s", p.ContainerPort, p.Protocol)
		once(deploymentPath("ports").Index(i), key, key)
	}
	for i, e := range t.Env {
		once(deploymentPath("env").Index(i).Child("name"), "env "+e.Name, e.Name)
	}
	return errs
}
