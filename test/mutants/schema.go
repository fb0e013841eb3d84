package main

// schemas are mutants of controller/servedschema: when a kind is held, and when that ends.
var schemas = []mutant{
	{"schema-loss-unused", "check.go", "a field that nobody uses holds the kind",
		"		if h.isUsed(path) {\n", "		if path != \"\" {\n"},
	{"schema-record-ignored", "check.go", "a new leader knows only what it sees itself",
		"	if first && stored != nil {\n", "	if first && stored == nil && h.known != nil {\n"},
	{"schema-settles-at-once", "check.go", "a schema that is published late ends what an object showed",
		"|| h.isSettling() ", ""},
	{"schema-object-forgotten", "check.go", "work goes on by an object that still lacks what it lost",
		"|| h.stillLost(objects):", ":"},
	{"schema-accepts-nothing", "check.go", "a loss cannot be accepted",
		"if slices.Contains(h.Accepted, digest) {", "if slices.Contains(h.Accepted, \"\") {"},
	{"schema-edit-is-loss", "loss.go", "a field that a user took out holds the kind",
		" || before.GetGeneration() != now.GetGeneration()", ""},
	{"schema-default-is-loss", "loss.go", "a new default holds the kind",
		"	addLost(lost, toJSON(was), toJSON(is), \"\")\n", "	addLost(lost, toJSON(was), toJSON(is), \"\")\n	addLost(lost, toJSON(is), toJSON(was), \"\")\n"},
	{"schema-held-writes", "supervise.go", "a held kind is written",
		" && g.hold.Held() != nil {", " && g.hold == nil {"},
	{"schema-held-works", "supervise.go", "the controller goes on while its kind is held",
		"		if (h.Held() != nil) != wasHeld {\n", "		if h.Held() == nil && wasHeld {\n"},
}
