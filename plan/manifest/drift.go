package manifest

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Drift lists where an object of any kind is not as the manifest says, in a fixed order:
// as Differences, but of all that the manifest has beside the status.
func Drift(manifest, have map[string]any) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(manifest)) {
		if key != "apiVersion" && key != "kind" && key != "status" {
			out = append(out, different(key, manifest[key], have[key])...)
		}
	}
	return out
}

// same says whether two values mean the same: numbers and quantities have several
// spellings, of which an API server gives one back.
func same(path string, want, have any) bool {
	if reflect.DeepEqual(want, have) {
		return true
	}
	if a, ok := number(want); ok {
		if b, ok := number(have); ok {
			return a == b
		}
	}
	return isQuantity(path) && sameQuantity(want, have)
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// isQuantity says whether there is a quantity at a path, such as a limit of memory.
func isQuantity(path string) bool {
	keys := strings.Split(path, ".")
	if slices.Contains([]string{"sizeLimit", "divisor", "averageValue"}, keys[len(keys)-1]) {
		return true
	}
	for _, key := range keys[:len(keys)-1] {
		if slices.Contains([]string{"limits", "requests", "hard", "capacity", "default", "defaultRequest", "max", "min", "overhead"}, key) {
			return true
		}
	}
	return false
}

func sameQuantity(want, have any) bool {
	a, err := quantity(want)
	if err != nil {
		return false
	}
	b, err := quantity(have)
	return err == nil && a.Cmp(b) == 0
}

func quantity(v any) (resource.Quantity, error) {
	if n, ok := number(v); ok {
		return resource.ParseQuantity(strconv.FormatFloat(n, 'f', -1, 64))
	}
	text, _ := v.(string)
	return resource.ParseQuantity(text)
}
