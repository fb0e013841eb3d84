// Package advdeployment judges AdvDeployments. Each rule has a file (rule_*.go), a name
// that is a label of metrics, and sentences that say what to do. What the planner could
// not carry out is refused by the planner's own sentences.
//
// It completes nothing: the fields that an AdvDeployment leaves out have their meaning
// without being written. Nothing here is needed for safety: the controller is correct
// without it.
package advdeployment

import (
	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/webhook/rule"
)

// Rules for AdvDeployments, in the order in which they report.
func Rules() rule.Rules[v1beta1.AdvDeployment] {
	return rule.Rules[v1beta1.AdvDeployment]{
		{Name: "Units", Judge: judgeUnits, Advise: adviseUnits},
		{Name: "Immutable", Compare: compareImmutable},
		{Name: "Charts", Advise: adviseCharts},
	}
}
