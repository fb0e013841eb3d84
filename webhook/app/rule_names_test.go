package app

import (
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	const advice = ": it is no DNS label; give lower case letters, digits and dashes, at most 63, with a letter or a digit at either end"
	long := strings.Repeat("a", 64)
	testRule(t, "Names", []ruleCase{
		{"nothing wanted", `{}`, ""},
		{"labels", `{deploymentTemplate: {name: app-deploy}, serviceTemplate: {name: app-service}}`, ""},
		{"one name for both, which are of two kinds", `{deploymentTemplate: {name: web}, serviceTemplate: {name: web}}`, ""},
		{"the longest", `{serviceTemplate: {name: ` + long[1:] + `}}`, ""},
		{"too long", `{deploymentTemplate: {name: ` + long + `}}`, `spec.deploymentTemplate.name: Invalid value: "` + long + `"` + advice},
		{"a domain", `{deploymentTemplate: {name: web.shop}}`, `spec.deploymentTemplate.name: Invalid value: "web.shop"` + advice},
		{"both wrong", `{deploymentTemplate: {name: Web}, serviceTemplate: {name: web-}}`,
			`spec.deploymentTemplate.name: Invalid value: "Web"` + advice + "\n" + `spec.serviceTemplate.name: Invalid value: "web-"` + advice},
	})
}
