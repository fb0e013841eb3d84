package tapp

import "testing"

func TestReplicas(t *testing.T) {
	testRule(t, "Replicas", []ruleCase{
		{"absent", "replicas: null", ""},
		{"none", "replicas: 0", ""},
		{"most", "replicas: 50000", ""},
		{"too many", "replicas: 50001", `spec.replicas: Invalid value: 50001: one TApp can have 50000 instances; split it into several`},
		{"negative", "replicas: -1", `spec.replicas: Invalid value: -1: it is negative; give 0 or more`},
	})
}
