// Package manifest compares objects with what is applied to them by the server: where
// they differ (differences.go), what no apply takes away (stray.go), and the stamp by
// which an apply that leaves a field out is noticed (stamp.go). It knows no kind of ours.
package manifest

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Differences lists where an object is not as the manifest says, in a fixed order.
// What the manifest does not mention may be as it is, unless it is a stray.
func Differences(manifest map[string]any, object any) []string {
	have := Plain(object)
	var out []string
	for _, key := range []string{"metadata", "spec"} {
		out = append(out, different(key, manifest[key], have[key])...)
	}
	for _, s := range strays(manifest, have) {
		out = append(out, s.what)
	}
	return out
}

func different(path string, want, have any) []string {
	switch want := want.(type) {
	case map[string]any:
		there, ok := have.(map[string]any)
		if !ok {
			return []string{path + " is missing"}
		}
		var out []string
		for _, key := range slices.Sorted(maps.Keys(want)) {
			out = append(out, different(path+"."+key, want[key], there[key])...)
		}
		return out
	case []any:
		there, _ := have.([]any)
		var out []string
		for i, entry := range want {
			out = append(out, differentEntry(path, i, entry, there)...)
		}
		return out
	}
	switch {
	case have == nil && isZero(want): // such as the value "" of a variable, which JSON leaves out
		return nil
	case have == nil:
		return []string{path + " is missing"}
	case !same(path, want, have):
		return []string{fmt.Sprintf("%s is %v instead of %v", path, have, want)}
	}
	return nil
}

// differentEntry looks for an entry of a list by the key that the API server
// merges such lists by. A list has no two entries with one key.
func differentEntry(path string, at int, want any, have []any) []string {
	key := keyOf(want)
	if key == "" {
		if at >= len(have) {
			return []string{fmt.Sprintf("%s[%d] is missing", path, at)}
		}
		return different(fmt.Sprintf("%s[%d]", path, at), want, have[at])
	}
	here := fmt.Sprintf("%s[%s]", path, key)
	for _, entry := range have {
		if keyOf(entry) == key {
			return different(here, want, entry)
		}
	}
	return []string{here + " is missing"}
}

// keyOf an entry: the number and protocol of a port, where a volume is mounted (one volume
// may be so twice), the UID of an owner, the name of anything else; empty: it has none.
func keyOf(entry any) string {
	fields, _ := entry.(map[string]any)
	for _, key := range []string{"containerPort", "port"} {
		if number, ok := fields[key]; ok {
			protocol, ok := fields["protocol"]
			if !ok {
				protocol = "TCP"
			}
			return fmt.Sprintf("%v/%v", number, protocol)
		}
	}
	for _, key := range []string{"mountPath", "devicePath", "uid", "name"} {
		if text, ok := fields[key].(string); ok {
			return text
		}
	}
	return ""
}

func isZero(v any) bool { return v == nil || reflect.ValueOf(v).IsZero() }
