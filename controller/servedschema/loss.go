package servedschema

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// lostFields are the fields of the spec that an object had and has no more, though nobody
// wrote a spec: its UID and generation are the same. A value that differs, such as a new
// default, is no loss.
func lostFields(before, now metav1.Object, specOf func(metav1.Object) any) []string {
	if before.GetUID() != now.GetUID() || before.GetGeneration() != now.GetGeneration() {
		return nil
	}
	was, is := specOf(before), specOf(now)
	if equality.Semantic.DeepEqual(was, is) {
		return nil
	}
	lost := map[string]struct{}{}
	addLost(lost, toJSON(was), toJSON(is), "")
	return slices.Sorted(maps.Keys(lost))
}

// addLost adds the paths of what was has and is has not. Items of lists are compared by
// their place: nobody wrote them, so that none moved.
func addLost(lost map[string]struct{}, was, is any, path string) {
	switch was := was.(type) {
	case map[string]any:
		is, _ := is.(map[string]any)
		for name, one := range was {
			other, has := is[name]
			if !has {
				lost[join(path, name)] = struct{}{}
				continue
			}
			addLost(lost, one, other, join(path, name))
		}
	case []any:
		is, _ := is.([]any)
		for i := range min(len(was), len(is)) {
			addLost(lost, was[i], is[i], path+"[]")
		}
	}
}

// toJSON is a spec as the API server has it; one that cannot be told has no fields.
func toJSON(of any) map[string]any {
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(of)
	if err != nil {
		return nil
	}
	return out
}
