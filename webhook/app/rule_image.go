package app

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	appv1 "tkestack.io/tapp/crd/app/v1"
)

// judgeImage requires an image for a Deployment that has a name.
func judgeImage(a *appv1.App) field.ErrorList {
	t := &a.Spec.DeploymentTemplate
	if t.Name == "" || strings.TrimSpace(t.Image) != "" {
		return nil
	}
	return field.ErrorList{field.Required(deploymentPath("image"), "the Deployment has a name and no image; give the image of its container, or leave the name out")}
}

// adviseImage warns of an image that nothing runs.
func adviseImage(a, _ *appv1.App) []string {
	t := &a.Spec.DeploymentTemplate
	if t.Name != "" || t.Image == "" {
		return nil
	}
	return []string{deploymentPath("image").String() + ": nothing runs this image, since deploymentTemplate.name is empty; give the Deployment a name"}
}
