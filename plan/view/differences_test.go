package view

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

func TestMetadataDifferences(t *testing.T) {
	metadata := func(labels, annotations map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Labels: labels, Annotations: annotations}
	}
	want := &corev1.PodTemplateSpec{ObjectMeta: metadata(map[string]string{"app": "web", "tier": "silver", tappv1.LabelTemplateHash: "x"}, map[string]string{"note": "a"})}
	for name, c := range map[string]struct {
		has  metav1.ObjectMeta
		want []string
	}{
		"as its template":     {metadata(map[string]string{"app": "web", "tier": "silver", tappv1.LabelTemplateHash: "y"}, map[string]string{"note": "a"}), nil},
		"with keys of others": {metadata(map[string]string{"app": "web", "tier": "silver", "role": "leader"}, map[string]string{"note": "a", "ip": "10.0.0.1"}), nil},
		"other values":        {metadata(map[string]string{"app": "web", "tier": "gold"}, map[string]string{"note": ""}), []string{`label tier is "gold", its template says "silver"`, `annotation note is "", its template says "a"`}},
		"without":             {metadata(map[string]string{"app": "web"}, nil), []string{`label tier is missing, its template says "silver"`, `annotation note is missing, its template says "a"`}},
	} {
		if got := metadataDifferences(&corev1.Pod{ObjectMeta: c.has}, want); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
	}
	long := &corev1.Pod{ObjectMeta: metadata(map[string]string{"app": "web", "tier": "silver"}, map[string]string{"note": strings.Repeat("x", 1<<20)})}
	if got := metadataDifferences(long, want); len(got) != 1 || len(got[0]) > 1<<10 {
		t.Errorf("%d sentences, the first of %d bytes", len(got), len(got[0]))
	}
}
