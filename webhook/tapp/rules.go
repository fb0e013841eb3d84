package tapp

import (
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/webhook/rule"
)

// Rules for TApps, in the order in which they report.
func Rules() rule.Rules[tappv1.TApp] {
	return rule.Rules[tappv1.TApp]{
		{Name: "Sizes", Judge: judgeSizes, Alone: true},
		{Name: "Name", Judge: judgeName},
		{Name: "Replicas", Judge: judgeReplicas},
		{Name: "Ordinals", Judge: judgeOrdinals},
		{Name: "Storage", Judge: judgeStorage},
		{Name: "ServiceName", Judge: judgeServiceName},
		{Name: "Selector", Judge: judgeSelector},
		{Name: "TemplateNames", Judge: judgeTemplateNames},
		{Name: "TemplateReferences", Judge: judgeTemplateReferences},
		{Name: "InstanceIDs", Judge: judgeInstanceIDs, Advise: adviseInstanceIDs},
		{Name: "Statuses", Judge: judgeStatuses, Advise: adviseStatuses},
		{Name: "Budgets", Judge: judgeBudgets},
		{Name: "Claims", Judge: judgeClaims, Compare: compareClaims},
		{Name: "RestartOn", Judge: judgeRestartOn, Advise: adviseRestartOn},
		{Name: "InitImages", Advise: adviseInitImages},
	}
}

// scaleRules are those that a change of replicas alone can break.
func scaleRules() rule.Rules[tappv1.TApp] {
	return Rules().Named("Name", "Replicas", "Ordinals", "Storage", "InstanceIDs")
}
