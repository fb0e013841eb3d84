package app

import (
	"testing"
)

func TestImage(t *testing.T) {
	const missing = "spec.deploymentTemplate.image: Required value: the Deployment has a name and no image; give the image of its container, or leave the name out"
	testRule(t, "Image", []ruleCase{
		{"there", `{deploymentTemplate: {name: a, image: nginx}}`, ""},
		{"no Deployment", `{}`, ""},
		{"missing", `{deploymentTemplate: {name: a}}`, missing},
		{"blank", `{deploymentTemplate: {name: a, image: " "}}`, missing},
		{"of nothing", `{deploymentTemplate: {image: nginx}}`,
			"warning: spec.deploymentTemplate.image: nothing runs this image, since deploymentTemplate.name is empty; give the Deployment a name"},
	})
}
