package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"
)

// dropRemoteSchemas takes schemas away that refer to other documents: Helm would fetch
// them, from files and hosts that a chart names. Their charts' values are not checked,
// and a warning says so.
func (r *rendering) dropRemoteSchemas(c *chart.Chart) {
	if reference := outside(c.Schema); reference != "" {
		c.Schema = nil
		r.warnings.add(fmt.Sprintf("values of %s are not checked: its values.schema.json refers to %q, which is not fetched", c.Name(), reference))
	}
	for _, sub := range c.Dependencies() {
		r.dropRemoteSchemas(sub)
	}
}

// outside is a reference of a schema to what is not in it; "" if there is none. What is
// no JSON is left to Helm to refuse.
func outside(schema []byte) string {
	var document any
	if json.Unmarshal(schema, &document) != nil {
		return ""
	}
	ids := map[string]bool{"": true}
	walk(document, func(key, value string) {
		if key == "$id" || key == "id" {
			ids[strings.TrimSuffix(value, "#")] = true
		}
	})
	found := ""
	walk(document, func(key, value string) {
		switch key {
		case "$ref", "$dynamicRef", "$recursiveRef", "$schema":
			base, _, _ := strings.Cut(value, "#")
			if !ids[base] && !metaSchema(base) && (found == "" || value < found) {
				found = value
			}
		}
	})
	return found
}

// metaSchema: the library has these in it.
func metaSchema(url string) bool {
	_, path, ok := strings.Cut(url, "://json-schema.org/")
	return ok && (strings.HasPrefix(path, "draft-") || strings.HasPrefix(path, "draft/") || path == "schema")
}

func walk(node any, visit func(key, value string)) {
	switch node := node.(type) {
	case map[string]any:
		for key, value := range node {
			if text, ok := value.(string); ok {
				visit(key, text)
			}
			walk(value, visit)
		}
	case []any:
		for _, item := range node {
			walk(item, visit)
		}
	}
}

// steady sorts what a schema has to say of values, which comes in the order of a map:
// "- at ..." and the lines that are indented below it.
func steady(message string) string {
	var out, items []string
	flush := func() {
		slices.Sort(items)
		out, items = append(out, items...), nil
	}
	for line := range strings.SplitSeq(message, "\n") {
		switch {
		case strings.HasPrefix(line, "- at "):
			items = append(items, line)
		case len(items) > 0 && strings.HasPrefix(line, " "):
			items[len(items)-1] += "\n" + line
		default:
			flush()
			out = append(out, line)
		}
	}
	flush()
	return strings.Join(out, "\n")
}
