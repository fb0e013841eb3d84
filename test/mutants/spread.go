package main

// spreads are mutants of plan/spread: the constraints of new pods.
var spreads = []mutant{
	{"spread-zones-always", "spread.go", "pods of a cluster without zones are spread over nothing",
		"	if p.Zones {\n", "	{\n"},
	{"spread-zones-never", "spread.go", "pods are not spread over zones",
		"	if p.Zones {\n", "	if p.Zones && selector == nil {\n"},
	{"spread-none-ignored", "spread.go", "a TApp that asks for none is spread as the operator wants",
		"	if asked == \"\" {\n", "	if asked == \"\" || p.Default == tappv1.SystemTopologySpread {\n"},
	{"spread-by-hash", "spread.go", "pods of each template are spread by themselves",
		"tappv1.WithoutHashLabels(t.Selector.MatchLabels)", "t.Selector.MatchLabels"},
	{"spread-by-hash-expressions", "spread.go", "expressions about hashes are in the constraints",
		"return r.Key == tappv1.LabelTemplateHash || r.Key == tappv1.LabelUniqHash", "return r.Key == tappv1.LabelUniqHash"},
	{"spread-requires", "spread.go", "a pod waits where it cannot be spread",
		"WhenUnsatisfiable: corev1.ScheduleAnyway", "WhenUnsatisfiable: corev1.DoNotSchedule"},
	{"spread-over-own", "spread.go", "constraints of the template are replaced",
		"len(pod.TopologySpreadConstraints) == 0 && ", ""},
	{"spread-of-another-scheduler", "spread.go", "another scheduler has to know the constraints",
		" && ours {", " && (ours || pod.SchedulerName != \"\") {"},
	{"spread-on-one-node", "spread.go", "a pod that names its node has constraints",
		" && pod.NodeName == \"\"", ""},
}

// answers are mutants of crd/client: what is made of the API server's answers.
var answers = []mutant{
	{"zones-first-page", "capability.go", "an empty page of nodes counts as the last one",
		"|| o.Continue == \"\" {", "|| o.Continue != \"?\" {"},
	{"zones-of-no-node", "capability.go", "a cluster without nodes has zones",
		"return anyNode(ctx, core, corev1.LabelTopologyZone)", "return true, nil"},
	{"zones-of-some", "capability.go", "that some nodes have zones is enough",
		"if err != nil || without {", "if err != nil && !without {"},
	{"zones-all-nodes", "capability.go", "all nodes of the cluster are read",
		"LabelSelector: selector, Limit: 1}", "LabelSelector: selector}"},
	{"zones-whole-nodes", "capability.go", "nodes are read whole",
		"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", "application/json"},
}
