// Package appset judges AppSets. Each rule has a file (rule_*.go), a name that is a label
// of metrics, and sentences that say what to do. What the planner could not carry out is
// refused by the planner's own sentences.
//
// It completes nothing: the fields that an AppSet leaves out have their meaning without
// being written. Nothing here is needed for safety: the controller is correct without it.
package appset

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/webhook/rule"
)

// Rules for AppSets, in the order in which they report.
func Rules() rule.Rules[v1beta1.AppSet] {
	return rule.Rules[v1beta1.AppSet]{
		{Name: "Units", Judge: judgeUnits, Advise: adviseUnits},
		{Name: "Immutable", Compare: compareImmutable},
		{Name: "Charts", Judge: judgeCharts, Advise: adviseCharts},
		{Name: "Budget", Advise: adviseBudget},
		{Name: "Preview", Advise: advisePreview},
	}
}

// invalid is a finding of which the value is no news: the sentence says what is wrong.
func invalid(path, why string) *field.Error {
	return field.Invalid(field.NewPath(path), field.OmitValueType{}, why)
}
