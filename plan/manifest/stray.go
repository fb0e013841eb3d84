package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// stray is something in a child that no apply takes away, because somebody else put it
// there, and with which the child is not what the App says.
type stray struct {
	// what it is, as a difference.
	what string
	// patch has the operations of a JSON patch that put it right.
	patch []Operation
}

// strays of a child, in a fixed order:
//
//   - a key in the selector of a Service that the App does not name: the Service leads to
//     no pod of the App, or to fewer;
//   - a port with the name of one of the App's and another number: the API server refuses
//     a second one of that name.
//
// Any other entry that somebody adds to a child is left alone.
func strays(manifest, have map[string]any) []stray {
	if manifest["kind"] == "Service" {
		return append(strayKeys(manifest, have), strayPorts("spec.ports", "port", At(manifest, "spec", "ports"), At(have, "spec", "ports"))...)
	}
	var out []stray
	containers, _ := At(have, "spec", "template", "spec", "containers").([]any)
	wanted, _ := At(manifest, "spec", "template", "spec", "containers").([]any)
	for _, want := range wanted {
		n := slices.IndexFunc(containers, func(c any) bool { return keyOf(c) == keyOf(want) })
		if n < 0 {
			continue
		}
		path := fmt.Sprintf("spec.template.spec.containers.%d.ports", n)
		out = append(out, strayPorts(path, "containerPort", At(want, "ports"), At(containers[n], "ports"))...)
	}
	return out
}

func strayKeys(manifest, have map[string]any) (out []stray) {
	want, _ := At(manifest, "spec", "selector").(map[string]any)
	is, _ := At(have, "spec", "selector").(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(is)) {
		if _, ours := want[key]; !ours {
			out = append(out, stray{fmt.Sprintf("spec.selector.%s is %v, and nothing asks for it", key, is[key]),
				[]Operation{{Op: "remove", Path: "/spec/selector/" + Pointer(key)}}})
		}
	}
	return out
}

// strayPorts are those with the name of a port that is wanted and another key. number is
// the field that has its number.
func strayPorts(path, number string, wanted, have any) (out []stray) {
	wants, _ := wanted.([]any)
	ports, _ := have.([]any)
	for n, port := range ports {
		is, _ := port.(map[string]any)
		name, _ := is["name"].(string)
		w := slices.IndexFunc(wants, func(want any) bool { return name != "" && At(want, "name") == name })
		if w < 0 || keyOf(wants[w]) == keyOf(port) {
			continue
		}
		s := stray{what: fmt.Sprintf("%s[%s] has the name %s", path, keyOf(port), name)}
		here := fmt.Sprintf("/%s/%d", strings.ReplaceAll(path, ".", "/"), n)
		if slices.ContainsFunc(ports, func(p any) bool { return keyOf(p) == keyOf(wants[w]) }) {
			s.patch = []Operation{{Op: "remove", Path: here}}
			return append(out, s) // those that follow have another place then
		}
		// It keeps what else it has, such as its node port.
		for _, field := range []string{number, "protocol"} {
			if value := At(wants[w], field); value != nil {
				s.patch = append(s.patch, Operation{Op: "add", Path: here + "/" + field, Value: value})
			}
		}
		out = append(out, s)
	}
	return out
}

// HasStrays says whether there is something in a child that no apply takes away.
func HasStrays(manifest map[string]any, object any) bool {
	return len(strays(manifest, Plain(object))) > 0
}

// Correction is a JSON patch of an object that puts its strays right, and holds for the
// version that was observed only; nil: there are none.
func Correction(manifest map[string]any, object any, uid types.UID, version string) []byte {
	all := strays(manifest, Plain(object))
	if len(all) == 0 {
		return nil
	}
	patch := ForVersion(uid, version)
	for _, s := range all {
		patch = append(patch, s.patch...)
	}
	raw, _ := json.Marshal(patch) // strings and numbers always marshal
	return raw
}

// At is the value below some keys; nil: there is none.
func At(value any, keys ...string) any {
	for _, key := range keys {
		fields, _ := value.(map[string]any)
		value = fields[key]
	}
	return value
}
