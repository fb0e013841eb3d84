package view

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/message"
	plan "tkestack.io/tapp/plan/tapp"
	"tkestack.io/tapp/plan/template"
)

// Changed is what somebody changed in the pod of an instance, each in a sentence: images first.
func (o *Observed) Changed(i *plan.Instance) []string {
	spec := o.TApp.Spec.FindTemplate(i.Template)
	if spec == nil || i.Pod == nil {
		return nil
	}
	out := ChangedMetadata(i.Pod, spec)
	if images := template.Differences(i.Pod, spec); images != "" {
		out = slices.Insert(out, 0, images)
	}
	return out
}

// ChangedMetadata are labels and annotations that somebody changed in a pod that follows a
// template. Where the pod, which may be nil, does not follow it, its update changes them.
func ChangedMetadata(pod *corev1.Pod, t *corev1.PodTemplateSpec) []string {
	if pod == nil {
		return nil
	}
	h, err := template.Hash(t)
	if err != nil || pod.Labels[tappv1.LabelTemplateHash] != h.Template {
		return nil
	}
	return metadataDifferences(pod, t)
}

// metadataDifferences tells, each in a sentence, which labels and annotations of a template its
// pod has with another value, or not at all. Somebody changed them: they stay, and the pod
// counts as one that follows the template. Keys that only the pod has are no difference.
func metadataDifferences(pod *corev1.Pod, t *corev1.PodTemplateSpec) []string {
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
