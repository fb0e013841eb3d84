package main

// kubectl are the mutants of plugin.
var kubectl = []mutant{
	{"changed-labels-untold", "../plan/view/differences.go", "a label of a pod with another value than its template's is no difference",
		"case template.IsOurKey(key), is && value == wants[key]:", "case template.IsOurKey(key), is:"},
	{"old-labels-are-changed", "../plan/view/differences.go", "labels of a pod that waits for its update are told as somebody's",
		"	if err != nil || pod.Labels[tappv1.LabelTemplateHash] != h.Template {", "	if err != nil || pod.Labels[tappv1.LabelTemplateHash] == h.Uniq {"},
	{"made-up-revision", "revisions.go", "undo runs what somebody wrote into a revision",
		"	if !strings.HasSuffix(r.Name, \"-\"+hash) {", "	if hash == \"\" {"},
	{"messages-steer-terminals", "table.go", "escape sequences in messages reach the terminal",
		"return r != '\\t' && !unicode.IsPrint(r)", "return r != '\\t' && unicode.IsControl(r) && r != '\\x1b'"},
	{"plugin-policy-ignored", "policy.go", "the published policy is not used",
		"return policy{Policy: p}", "return policy{Policy: plan.Policy{DeletePodAfterAppFinish: true, NodeLostAfter: p.NodeLostAfter}}"},
	{"plugin-note-always", "policy.go", "the note is printed where the policy does not matter",
		"	if !slices.ContainsFunc(instances, func(i plan.Instance) bool { return !same(i) }) {\n		return \"\"\n	}\n", "	_ = same\n"},
	{"plugin-undo-skips", "history.go", "undo goes back by two revisions",
		"for i := len(revisions) - 1; i > 0; i-- {\n		if revisions[i].Name == t.Status.UpdateRevision {\n			return &revisions[i-1], nil",
		"for i := len(revisions) - 1; i > 1; i-- {\n		if revisions[i].Name == t.Status.UpdateRevision {\n			return &revisions[i-2], nil"},
	{"plugin-undo-unconditional", "history.go", "undo overwrites a change that it did not see",
		"{\"test\", \"/metadata/uid\", t.UID}, {\"test\", \"/metadata/generation\", t.Generation}", "{\"test\", \"/metadata/uid\", t.UID}"},
	{"plugin-range-open", "ids.go", "a range lacks its last id",
		"for id := from; id <= to; id++ {", "for id := from; id < to; id++ {"},
	{"plugin-ready-by-hearsay", "status.go", "status believes a stored condition that the pods contradict",
		"ready.Status == metav1.ConditionTrue &&\n		meta.IsStatusConditionTrue(o.Plan.Status.Conditions, tappv1.ConditionReady), nil", "ready.Status == metav1.ConditionTrue, nil"},
	{"plugin-restart-refuses-all", "restart.go", "one killed instance holds the restart of all others up",
		"	named := r.all || len(args) > 0", "	named := true"},
	{"plugin-restart-some", "restart.go", "a restart of named instances leaves those out that cannot restart",
		"	named := r.all || len(args) > 0", "	named := r.all"},
	{"plugin-counts-all", "status.go", "a restart that was asked for counts as done",
		"case i.Available && i.Current && !restarts:", "case i.Available && (i.Current || restarts):"},
}

// migrations are the mutants of plugin/migrate.
var migrations = []mutant{
	{"migration-leaves-strays", "steps.go", "claims lose their StatefulSet, and Argo CD prunes them",
		" || v.spares(ctx, c) != nil)", ")"},
	{"migration-annotates-what-goes", "steps.go", "claims that are to go with the TApp are annotated",
		"p != nil && p.WhenDeleted == appsv1.DeletePersistentVolumeClaimRetentionPolicyType", "p != nil && p.WhenDeleted == \"?\""},
	{"migration-strays-unwritten", "steps.go", "the annotations are told of, and not written",
		"m[\"annotations\"], m[\"resourceVersion\"] = spare, c.ResourceVersion", "m[\"resourceVersion\"] = c.ResourceVersion"},
	{"anything-comes-back", "convert.go", "the way back of migrate creates whatever the annotation holds",
		"|| set.Name != t.Name || set.Namespace != t.Namespace {", "{"},
	{"plugin-migrates-foreign-pods", "check.go", "a pod that is not the StatefulSet's is no obstacle",
		"case !metav1.IsControlledBy(pod, set):", "case false:"},
	{"plugin-migrates-old-pods", "check.go", "a pod of an older template is no obstacle",
		"pod.Labels[appsv1.ControllerRevisionHashLabelKey] != set.Status.UpdateRevision", "pod.Labels[appsv1.ControllerRevisionHashLabelKey] == \"\""},
}

// hands are the mutants of plugin/ownership.
var hands = []mutant{
	{"hands-keep-all", "write.go", "the plugin keeps the fields that somebody declares, and the next apply is a conflict",
		"entries == nil {", "entries != nil {"},
	{"hands-keep-new", "ownership.go", "what undo brings back is nobody's, and the next apply leaves it there",
		"declarer != nil && !fresh.Empty()", "declarer != nil && fresh.Empty()"},
	{"hands-give-all", "ownership.go", "what kill wrote goes to the applier, whose next apply starts the instance",
		"|| within(a[i].fields, fields).Empty() {", "{"},
	{"hands-give-any", "ownership.go", "what undo brings back goes to somebody who declares another part of the spec",
		"out.shares = append(out.shares, share{declarer.entry, within(fresh, adopt)})", "out.shares = append(out.shares, share{had[0].entry, within(fresh, adopt)})"},
	{"hands-own-maps", "ownership.go", "the plugin owns the map that its last entry left, and an apply that leaves out its own entries is refused",
		"mine.Has(path) {", "mine.Has(path) && writer == \"\" {"},
	{"hands-rob", "ownership.go", "a field that somebody has taken since is given to the former owner",
		"		back := s.fields.Intersection(mine)\n", "		back := s.fields.Union(s.fields.Intersection(mine))\n"},
	{"hands-give-updates", "ownership.go", "a manager that never applies is given fields back",
		"		if o.applies() {\n			out.shares", "		if o.entry.Manager != writer {\n			out.shares"},
	{"hands-share", "ownership.go", "the plugin goes on owning what it gave back",
		"o.fields = o.fields.Difference(given)", "o.fields = o.fields.Union(given)"},
	{"hands-write-first", "write.go", "a dry run writes",
		"	if w.DryRun {\n		return after, nil\n	}\n", ""},
	{"hands-once", "write.go", "fields are not given back where the object changed meanwhile",
		"try == tries", "try == 1"},
	{"hands-for-ever", "write.go", "an object that changes all the time is tried for ever",
		"!apierrors.IsConflict(err) || try == tries", "!apierrors.IsConflict(err) || try == 100*tries"},
	{"hands-silent", "note.go", "nobody is told who sets the field back",
		"if !known || len(o.Fields) == 0 {", "if known {"},
	{"hands-flux-silent", "note.go", "nobody is told that Flux removes what kubectl tapp wrote",
		"if !applied || !strings.HasPrefix(writer, \"kubectl\") {", "if !applied || strings.HasPrefix(writer, \"kubectl\") {"},
}

// told are the mutants of plan/view, which tests of plugin notice.
var told = []mutant{
	{"view-budgets-swapped", "budget.go", "explain and plan tell of the rolling budget where the forced one holds",
		"	if forced {\n", "	if !forced {\n"},
	{"view-phase-swapped", "preview.go", "plan calls forced updates rolling",
		"i != nil && i.Forced {", "i != nil && !i.Forced {"},
	{"view-held-changes", "preview.go", "what InPlaceOnly forbids counts as a change",
		"return s.Phase != Held", "return s.Phase != AtOnce"},
}
