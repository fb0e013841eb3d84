package tapp

import "testing"

func TestOrdinals(t *testing.T) {
	testRule(t, "Ordinals", []ruleCase{
		{"absent", "", ""},
		{"empty", "ordinals: {}", ""},
		{"a start", "ordinals: {start: 1000}", ""},
		{"the highest id", "{replicas: 2, ordinals: {start: 2147483646}}", ""},
		{"one more", "{replicas: 3, ordinals: {start: 2147483646}}",
			"spec.ordinals.start: Invalid value: 2147483646: with spec.replicas 3 the last id would be 2147483648, and no id is above 2147483647; begin lower"},
		{"no instances at the end", "{replicas: 0, ordinals: {start: 2147483647}}", ""},
		{"negative", "ordinals: {start: -1}", "spec.ordinals.start: Invalid value: -1: it is negative; give 0 or more"},
	})
}
