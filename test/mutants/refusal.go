package main

// refusals are mutants of plan/refusal: what the API server refuses, and which is told.
var refusals = []mutant{
	{"refused-update-before-deletion", "refusal.go", "an update that is refused is told before a deletion",
		"	case FailedDelete:\n		return 1\n", "	case FailedDelete:\n		return 3\n"},
	{"refused-highest-first", "refusal.go", "the highest id is told",
		"cmp.Compare(k.ID, other.ID), cmp", "cmp.Compare(other.ID, k.ID), cmp"},
	{"refused-since-the-last-try", "refusal.go", "the time is that of the last try",
		"		since = was.Since\n", "		_ = was\n"},
	{"refused-after-it-passed", "refusal.go", "what came through is told as refused",
		"		delete(s, Key{ID: id, Op: part})\n", "		_ = part\n"},
	{"refused-parts-stay", "refusal.go", "the deletion of an ended pod is told as refused after its replacement",
		"[]string{\"Create\", \"Delete\"}}", "[]string{\"Create\"}}"},
	{"refused-others-untold", "refusal.go", "how many others there are is not told",
		"	case n > 1:\n", "	case n > 1000:\n"},
	{"refused-condition-unread", "refusal.go", "who has tried nothing himself knows of nothing",
		"		if ok && o.reason == c.Reason {\n", "		if ok && o.reason == c.Reason && id < 0 {\n"},
	{"refused-of-old-read", "refusal.go", "a condition that is not True is read",
		"if c == nil || c.Status != metav1.ConditionTrue {", "if c == nil {"},
}

// terminations are mutants of plan/termination: claims that are being deleted.
var terminations = []mutant{
	{"terminating-any-annotation", "termination.go", "any value of the annotation lets a claim go",
		"return slices.Contains(free, string(c.UID)) })", "return pod.Annotations[tappv1.AnnotationClaimMayGo] != \"\" })"},
	{"terminating-by-name", "termination.go", "a claim is let go by its name",
		"slices.Contains(free, string(c.UID))", "slices.Contains(free, c.Name)"},
	{"terminating-unordered", "termination.go", "the claims of an instance are told as they were found",
		"	slices.SortFunc(of, func(a, b Claim) int { return strings.Compare(a.Name, b.Name) })\n", ""},
	{"terminating-false-read", "termination.go", "a condition that is not True is read",
		"if c == nil || c.Status != metav1.ConditionTrue {", "if c == nil {"},
}
