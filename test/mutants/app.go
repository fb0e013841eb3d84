package main

// children are mutants of the plan of an App, and ownership those of what it compares its
// children with: the simulation of Apps has the field ownership of the API server.
var (
	children = []mutant{
		{"app-adopts-uncorrected", "compute.go", "a child that was left behind, and that an apply cannot put right, is applied to for ever",
			"patch != nil && c.isRefused(wanted) {", "patch != nil && c.isRefused(wanted) && have.GetUID() == \"\" {"},
		{"app-keeps-old-names", "compute.go", "a child whose name the App has given up stays",
			"	case upToDate:\n", "	case upToDate && o.GetUID() == \"\":\n"},
		{"app-takes-any", "compute.go", "a child that another App controls is taken for this one's",
			"return owner != nil && owner.UID == c.app.UID", "return owner != nil && owner.Kind == appv1.Kind"},
		{"app-unset-stays", "manifest.go", "a variable without a value is left to whoever sets it",
			`variable["value"] = ""`, `variable["name"] = variable["name"]`},
	}
	ownership = []mutant{
		{"app-keys-stay", "stray.go", "a key that somebody adds to the selector of a Service stays",
			"if _, ours := want[key]; !ours {", "if _, ours := want[key]; !ours && len(want) == 0 {"},
		{"app-ports-stay", "stray.go", "a port that somebody moved stays beside the App's",
			"if w < 0 || keyOf(wants[w]) == keyOf(port) {", "if w < 0 || name != \"\" {"},
	}
)
