package view

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"tkestack.io/tapp/plan/message"
	"tkestack.io/tapp/plan/template"
)

// MetadataDifferences tells, each in a sentence, which labels and annotations of a template its
// pod has with another value, or not at all. Somebody changed them: they stay, and the pod
// counts as one that follows the template. Keys that only the pod has are no difference.
func MetadataDifferences(pod *corev1.Pod, t *corev1.PodTemplateSpec) []string {
	return slices.Concat(mapDifferences("label", pod.Labels, t.Labels), mapDifferences("annotation", pod.Annotations, t.Annotations))
}

func mapDifferences(kind string, has, wants map[string]string) (out []string) {
	for _, key := range slices.Sorted(maps.Keys(wants)) {
		value, is := has[key]
		switch {
		case template.IsOurKey(key), is && value == wants[key]:
		case is:
			out = append(out, fmt.Sprintf("%s %s is %q, its template says %q", kind, key, message.Quote(value), message.Quote(wants[key])))
		default:
			out = append(out, fmt.Sprintf("%s %s is missing, its template says %q", kind, key, message.Quote(wants[key])))
		}
	}
	return out
}
