package main

// helmRecords are the mutants of helm: child processes and records.
var helmRecords = []mutant{
	{"record-without-labels", "record.go", "helm does not find the record",
		"	maps.Copy(labels, RecordLabels(r.Name))\n", ""},
	{"record-too-large", "record.go", "a record that no Secret can hold is tried",
		"if len(data) > corev1.MaxSecretSize {", "if len(data) > 2*corev1.MaxSecretSize {"},
	{"record-bomb", "record.go", "a record is unpacked whatever its size",
		"if len(raw) > maxRecord {", "if len(raw) > 2*maxRecord {"},
	{"helm3-times", "record.go", "records of helm 3 are not read",
		"if string(fields[name]) == `\"\"` {", "if string(fields[name]) == `` {"},
	{"hooks-by-name", "hook.go", "hooks run in the order of their names",
		"		if a.Weight != b.Weight {\n			return a.Weight - b.Weight\n		}\n", ""},
	{"child-with-secrets", "render.go", "the child process has the environment of this one",
		"child.Env = environment(memory)", "child.Env = append(os.Environ(), environment(memory)...)"},
	{"cut-answer-counts", "render.go", "an answer that is cut off is taken for whole",
		"	if answer.full {", "	if false {"},
	{"container-overrun", "memory.go", "child processes together pass the container's limit",
		"(container/10*9 - own) / int64(limits.AtOnce)", "container/10*9 - own"},
}

// helmEngine are the mutants of helm/engine: the child process.
var helmEngine = []mutant{
	{"memory-unbounded", "confine_linux.go", "a chart may have all memory",
		"	value = min(value, now.Max)\n", "	value = now.Max\n"},
	{"overrides-below-users", "values.go", "the user's values win over the podSet's replicas",
		"return loader.MergeMaps(out, known(r.chart.Values, r.request.Overrides)), nil", "return loader.MergeMaps(known(r.chart.Values, r.request.Overrides), out), nil"},
	{"unknown-keys-set", "values.go", "values are set that the chart has no key for",
		"		if !ok {\n", "		if !ok && key == \"\" {\n"},
	{"remote-schema-fetched", "schema.go", "a schema that refers to other documents is used",
		"		c.Schema = nil\n", ""},
	{"tests-not-told", "render.go", "nobody is told that tests are not run",
		"if slices.Contains(h.Events, release.HookTest) {", "if false {"},
	{"map-order", "render.go", "what is told of a chart changes each time",
		"	sortDependencies(c)\n	// As helm", "	// As helm"},
}

// helmSource are the mutants of helm/source: where archives come from.
var helmSource = []mutant{
	{"private-allowed", "address.go", "private addresses are dialled",
		"!ip.IsPrivate() &&", ""},
	{"mapped-allowed", "address.go", "an IPv4 address in an IPv6 one is not seen",
		"		ip = netip.AddrFrom4([4]byte(b[12:]))\n", "		_ = b\n"},
	{"credentials-follow", "fetch.go", "a redirect's host gets the token",
		"		request.Header.Del(\"Authorization\")\n", ""},
	{"credentials-to-realm", "fetch.go", "a registry's realm gets the credentials",
		"if there == nil || there.Username == \"\" {", "if there == nil {\n			return g.next.RoundTrip(request)\n		}\n		if there.Username == \"\" {"},
	{"index-believed", "source.go", "the digest of the index is not checked",
		"want != \"\" && !strings.EqualFold(want, digest)", "want == digest && want == \"\""},
	{"downgrade", "fetch.go", "a redirect may lead from https to http",
		"if next.URL.Scheme != \"https\" && via[len(via)-1].URL.Scheme == \"https\" {", "if next.URL.Scheme == \"ftp\" {"},
	{"any-host", "source.go", "hosts that no repository names are asked",
		"if repositories.at(target) == nil && !s.options.AllowURLs {", "if false {"},
	{"prerelease", "index.go", "the lowest version of a range is taken",
		"parsed.GreaterThan(best)", "parsed.LessThan(best)"},
	{"body-unbounded", "fetch.go", "a body of any size is taken",
		"	if int64(len(body)) > most {", "	if int64(len(body)) > most*2 {"},
}
