package app

import (
	"testing"
)

func TestReplicas(t *testing.T) {
	testRule(t, "Replicas", []ruleCase{
		{"absent", `{}`, ""},
		{"none", `{deploymentTemplate: {replicas: 0}}`, ""},
		{"negative", `{deploymentTemplate: {replicas: -1}}`, "spec.deploymentTemplate.replicas: Invalid value: -1: it is negative; give 0 or more"},
	})
}
