package tapp

import "testing"

func TestBudgets(t *testing.T) {
	const advice = ": no update could start; give a number above 0, or a percentage from 1% to 100%"
	testRule(t, "Budgets", []ruleCase{
		{"absent", "", ""},
		{"numbers", "updateStrategy: {maxUnavailable: 1000, forceUpdate: {maxUnavailable: 1}}", ""},
		{"percentages", "updateStrategy: {maxUnavailable: 1%, forceUpdate: {maxUnavailable: 100%}}", ""},
		{"zero", "updateStrategy: {maxUnavailable: 0}", "spec.updateStrategy.maxUnavailable: Invalid value: 0" + advice},
		{"zero percent", "updateStrategy: {maxUnavailable: 0%}", `spec.updateStrategy.maxUnavailable: Invalid value: "0%"` + advice},
		{"a sign", "updateStrategy: {maxUnavailable: +5%}", `spec.updateStrategy.maxUnavailable: Invalid value: "+5%": it is no percentage as Kubernetes writes them; write 5%`},
		{"leading zeros", "updateStrategy: {forceUpdate: {maxUnavailable: 005%}}", `spec.updateStrategy.forceUpdate.maxUnavailable: Invalid value: "005%": it is no percentage as Kubernetes writes them; write 5%`},
		{"zeros", "updateStrategy: {maxUnavailable: 000%}", `spec.updateStrategy.maxUnavailable: Invalid value: "000%"` + advice},
		{"too much", "updateStrategy: {forceUpdate: {maxUnavailable: 101%}}", `spec.updateStrategy.forceUpdate.maxUnavailable: Invalid value: "101%"` + advice},
		{"a number as text", "updateStrategy: {forceUpdate: {maxUnavailable: '3'}}", `spec.updateStrategy.forceUpdate.maxUnavailable: Invalid value: "3"` + advice},
	})
}
