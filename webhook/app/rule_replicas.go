package app

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	appv1 "tkestack.io/tapp/crd/app/v1"
)

// judgeReplicas rejects a negative number of pods.
func judgeReplicas(a *appv1.App) field.ErrorList {
	if n := *a.Spec.DeploymentTemplate.Replicas; n < 0 {
		return field.ErrorList{field.Invalid(deploymentPath("replicas"), n, "it is negative; give 0 or more")}
	}
	return nil
}
