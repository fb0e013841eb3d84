package main

// templates are the mutants of plan/template: which templates are the same.
var templates = []mutant{
	{"hash-without-labels", "hash.go", "labels and annotations are no part of the template hash",
		"fromTree(withoutHashLabels(template))", "fromTree(map[string]any{\"spec\": template[\"spec\"]})"},
	{"hash-counts-stamps", "hash.go", "the stamped hashes are part of the hash",
		"fromTree(withoutHashLabels(template))", "fromTree(template)"},
	{"typed-hash-counts-stamps", "hash.go", "the stamped hashes are part of the hash of a template in Go's types",
		"	bare.Labels = tappv1.WithoutHashLabels(t.Labels)\n", ""},
	{"typed-hash-has-empty-structs", "tree.go", "a struct that sets nothing is part of a hash",
		"written && (field.Kind() != reflect.Struct || string(w.buf[from:]) != \"{}\")", "written && from > 0"},
	{"hash-without-init-images", "canonical.go", "the image of an init container is part of the uniq hash",
		"[2]*node{w.spec.field(\"containers\").elem, w.spec.field(\"initContainers\").elem}", "[2]*node{w.spec.field(\"containers\").elem, w.spec.field(\"containers\").elem}"},
	{"foreign-hash-trusted", "hash.go", "a decimal hash counts as one of ours",
		"if !found || len(digits) != hashDigits {", "if !found {\n		return hash != \"\"\n	}\n	if len(digits) != hashDigits {"},
	{"docker-io-differs", "image.go", "nginx and docker.io/library/nginx are two images",
		"	if a == \"\" || b == \"\" {\n		return false\n	}", "	if a != \"\" || b != \"\" {\n		return false\n	}"},
}
