package view

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// FieldChange is a field with different values in two objects.
type FieldChange struct {
	// Path for people, with the names of named list entries:
	// spec.template.spec.containers[web].image.
	Path string `json:"path"`
	// From and To are the values; nil where the field is absent.
	From json.RawMessage `json:"from,omitempty"`
	To   json.RawMessage `json:"to,omitempty"`
}

// String is "path: from -> to".
func (c FieldChange) String() string {
	return fmt.Sprintf("%s: %s -> %s", c.Path, orNone(unquote(c.From)), orNone(unquote(c.To)))
}

// unquote writes a string without quotes, unless it is empty.
func unquote(value json.RawMessage) string {
	var out string
	if json.Unmarshal(value, &out) == nil && out != "" {
		return out
	}
	return string(value)
}

// Changes compares two values that marshal to JSON, and returns what differs
// in the order of the paths.
func Changes(path string, from, to any) ([]FieldChange, error) {
	var sides [2]any
	for i, value := range []any{from, to} {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("comparing %s: %w", path, err)
		}
		if err := json.Unmarshal(text, &sides[i]); err != nil {
			return nil, fmt.Errorf("comparing %s: %w", path, err)
		}
	}
	return compare(nil, path, sides[0], sides[1]), nil
}

func compare(out []FieldChange, path string, from, to any) []FieldChange {
	if reflect.DeepEqual(from, to) || isEmpty(from) && isEmpty(to) {
		return out
	}
	a, b, keyed := members(from, to)
	if !keyed {
		return append(out, FieldChange{path, raw(from), raw(to)})
	}
	keys := map[string]struct{}{}
	for _, side := range []map[string]any{a.entries, b.entries} {
		for key := range side {
			keys[key] = struct{}{}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		out = compare(out, joinPath(path, key, a.list), a.entries[key], b.entries[key])
	}
	return out
}

// joinPath adds a key to a path. Entries of lists, and of maps whose keys users choose, are
// in brackets, as in the controller's messages.
func joinPath(path, key string, list bool) string {
	field := path[strings.LastIndexByte(path, '.')+1:]
	switch {
	case list, slices.Contains([]string{"templates", "templatePool", "statuses", "labels", "annotations", "matchLabels"}, field):
		return path + "[" + key + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

// isEmpty: the API makes no difference between absent, null and empty.
func isEmpty(v any) bool {
	switch x := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(x) == 0
	case []any:
		return len(x) == 0
	}
	return false
}

func raw(v any) json.RawMessage {
	if v == nil {
		return nil
	}
	out, _ := json.Marshal(v) // it came from JSON
	return out
}

// keyedSide is one side of a comparison by key.
type keyedSide struct {
	entries map[string]any
	list    bool
}

// members returns the entries of both sides by key; false if the sides are compared as a
// whole.
//
//	both are maps, or lists                      by key
//	one is absent, the other a map of scalars    by key: a change for each label
//	one is absent, the other anything else       as a whole: a new container is one change
//	any other pair                               as a whole
func members(from, to any) (a, b keyedSide, keyed bool) {
	a, aOK := keysOf(from)
	b, bOK := keysOf(to)
	switch {
	case from == nil && isPlainMap(to):
		return keyedSide{}, b, true
	case to == nil && isPlainMap(from):
		return a, keyedSide{}, true
	}
	return a, b, aOK && bOK && a.list == b.list
}

func isPlainMap(v any) bool {
	fields, ok := v.(map[string]any)
	for _, value := range fields {
		switch value.(type) {
		case map[string]any, []any:
			return false
		}
	}
	return ok
}

func keysOf(v any) (keyedSide, bool) {
	switch x := v.(type) {
	case map[string]any:
		return keyedSide{entries: x}, true
	case []any:
		out := keyedSide{entries: map[string]any{}, list: true}
		for i, entry := range x {
			key := strconv.Itoa(i)
			if fields, ok := entry.(map[string]any); ok {
				if name, ok := nameOf(fields); ok {
					key = name
				}
			}
			out.entries[key] = entry
		}
		return out, len(out.entries) == len(x) // else the names are not unique
	}
	return keyedSide{}, false
}

// nameOf returns the name of an entry of a list: of a container, or of a claim template.
func nameOf(fields map[string]any) (string, bool) {
	if name, ok := fields["name"].(string); ok {
		return name, true
	}
	metadata, _ := fields["metadata"].(map[string]any)
	name, ok := metadata["name"].(string)
	return name, ok
}

// none stands for a value that there is not, as kubectl writes it.
const none = "<none>"

func orNone(text string) string {
	if text == "" {
		return none
	}
	return text
}
