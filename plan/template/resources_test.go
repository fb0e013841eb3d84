package template

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// TestChangedResources: what the template says now, and said before.
func TestChangedResources(t *testing.T) {
	mine, foreign := "v1-aaaaaaaaaaaaaaaa", "2473541281"
	list := func(cpu, memory string) corev1.ResourceList {
		out := corev1.ResourceList{}
		for name, text := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory} {
			if text != "" {
				out[name] = resource.MustParse(text)
			}
		}
		return out
	}
	of := func(requests, limits corev1.ResourceList) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: requests, Limits: limits}
	}
	none := list("", "")
	for _, c := range []struct {
		about, hash, record, shape string
		want                       corev1.ResourceRequirements
		changed                    string
	}{
		{"unchanged", mine, "100m,1Gi,,", "s", of(list("100m", "1Gi"), none), ""},
		{"respelled", mine, "100m,1Gi,,", "s", of(list("0.1", "1024Mi"), none), ""},
		{"a request", mine, "100m,1Gi,,", "s", of(list("200m", "1Gi"), none), "app:requests.cpu"},
		{"a limit", mine, "100m,1Gi,,2Gi", "s", of(list("100m", "1Gi"), list("", "3Gi")), "app:limits.memory"},
		{"a limit, which is the request, too", mine, "1,,1,", "s", of(none, list("2", "")), "app:limits.cpu app:requests.cpu"},
		{"a request that says what the limit says", mine, "1,,1,", "s", of(list("1", ""), list("1", "")), ""},
		{"less than a thousandth, as the API server has it", mine, "1m,,,", "s", of(list("500u", ""), none), ""},
		{"one goes", mine, "100m,1Gi,,", "s", of(list("100m", ""), none), "app:requests.memory"},
		{"all go", mine, "100m,1Gi,1,2Gi", "s", of(none, none), "app:limits.cpu app:limits.memory app:requests.cpu app:requests.memory"},
		{"there were none", mine, "", "", of(list("", "1Gi"), none), "app:requests.memory"},
		{"no record", mine, "", "s", of(list("100m", "1Gi"), none), "true"},
		{"of another program", foreign, "100m,1Gi,,", "", of(list("100m", "1Gi"), none), "true"},
		{"not a record", mine, "100m", "s", of(list("100m", "1Gi"), none), "app:requests.memory"},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{tappv1.LabelTemplateHash: c.hash}, Annotations: map[string]string{}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "mesh"}, {Name: "app", Resources: of(list("7", "7Gi"), none)}}}}
		if c.record != "" {
			pod.Annotations[tappv1.AnnotationTemplateKeys] = `{"resources":{"app":"` + c.record + `"}}`
		}
		if c.shape != "" {
			pod.Annotations[tappv1.AnnotationShapeHash] = c.shape
		}
		want := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Resources: c.want}}}}
		if got := RecordOf(pod).ChangedResources(pod, want).String(); got != c.changed {
			t.Errorf("%s: %q, not %q", c.about, got, c.changed)
		}
		// A record that the template has just made leaves nothing to do.
		if pod.Annotations[tappv1.AnnotationTemplateKeys] = MarshalRecord(want); c.hash == mine && len(RecordOf(pod).Resources) > 0 {
			if got := RecordOf(pod).ChangedResources(pod, want).String(); got != "" {
				t.Errorf("%s, again: %q", c.about, got)
			}
		}
	}
}

func TestResourceSet(t *testing.T) {
	cpu, memory := ResourceField{"app", "requests", corev1.ResourceCPU}, ResourceField{"app", "limits", corev1.ResourceMemory}
	for _, c := range []struct {
		a, b, both  string
		cpu, memory bool
	}{
		{"", "", "", false, false},
		{"app:requests.cpu", "", "app:requests.cpu", true, false},
		{"app:requests.cpu", "app:limits.memory app:requests.cpu", "app:limits.memory app:requests.cpu", true, true},
		{"log:requests.cpu", "app:limits.cpu", "app:limits.cpu log:requests.cpu", false, false},
		{"true", "app:requests.cpu", "true", true, true},
		{"app:requests.cpu", "true", "true", true, true},
		{"app:requests.cpu yes", "", "true", true, true},
	} {
		both := ReadResourceSet(c.a).With(ReadResourceSet(c.b))
		if both.String() != c.both || both.Has(cpu) != c.cpu || both.Has(memory) != c.memory {
			t.Errorf("%q with %q: %q, %t, %t", c.a, c.b, both, both.Has(cpu), both.Has(memory))
		}
	}
}
