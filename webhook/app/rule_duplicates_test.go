package app

import (
	"testing"
)

func TestDuplicates(t *testing.T) {
	testRule(t, "Duplicates", []ruleCase{
		{"none", `{deploymentTemplate: {ports: [{containerPort: 80}, {containerPort: 81}], env: [{name: A}, {name: a}]}}`, ""},
		{"one port by two protocols", `{deploymentTemplate: {ports: [{containerPort: 53}, {containerPort: 53, protocol: UDP}]}}`, ""},
		{"one port twice", `{deploymentTemplate: {ports: [{containerPort: 80}, {containerPort: 80, name: b, protocol: TCP}]}}`,
			`spec.deploymentTemplate.ports[1]: Duplicate value: "80/TCP"`},
		{"one variable twice", `{deploymentTemplate: {env: [{name: A, value: a}, {name: A, value: b}]}}`,
			`spec.deploymentTemplate.env[1].name: Duplicate value: "A"`},
	})
}
