// Package app judges Apps: each rule has a file (rule_*.go), a name that is a
// label of metrics, and sentences that say what to do. What cannot be told from the
// App alone is children.go's: whether another App names the same child.
//
// Nothing here is needed for safety: the controller is correct without it.
package app

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	appv1 "tkestack.io/tapp/crd/app/v1"
)

// Rule is one thing that an App has to keep to. Its functions get Apps with their
// defaults, and change nothing; those that a rule has not got are nil.
type Rule struct {
	Name string
	// Judge finds what is wrong with an App as it is.
	Judge func(*appv1.App) field.ErrorList
	// Advise finds what is allowed, and worth a word.
	Advise func(*appv1.App) []string
}

// Rules in the order in which they are told of.
func Rules() []Rule {
	return []Rule{
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
