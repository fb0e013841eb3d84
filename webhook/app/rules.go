// Package app judges Apps. Each rule has a file (rule_*.go), a name that is a label
// of metrics, and sentences that say what to do. children.go looks beyond the App:
// another App may name the same child.
//
// Nothing here is needed for safety: the controller is correct without it.
package app

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	appv1 "tkestack.io/tapp/crd/app/v1"
	"tkestack.io/tapp/webhook/rule"
)

// Rules for Apps, in the order in which they report.
func Rules() rule.Rules[appv1.App] {
	return rule.Rules[appv1.App]{
		{Name: "Names", Judge: judgeNames},
		{Name: "Image", Judge: judgeImage, Advise: adviseImage},
		{Name: "Replicas", Judge: judgeReplicas},
		{Name: "Duplicates", Judge: judgeDuplicates},
	}
}

func deploymentPath(fields ...string) *field.Path {
	path := field.NewPath("spec", "deploymentTemplate")
	for _, f := range fields {
		path = path.Child(f)
	}
	return path
}
