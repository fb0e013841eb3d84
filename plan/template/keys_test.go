package template

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

func TestTemplateKeys(t *testing.T) {
	spec := &corev1.PodTemplateSpec{}
	if keys := MarshalKeys(spec); keys != "" {
		t.Errorf("of nothing: %s", keys)
	}
	spec.Labels = map[string]string{"b": "1", "a": "2", tappv1.LabelTemplateHash: "x", tappv1.LabelUniqHash: "y"}
	spec.Annotations = map[string]string{"c/d": "3"}
	if keys := MarshalKeys(spec); keys != `{"labels":["a","b"],"annotations":["c/d"]}` {
		t.Errorf("%s", keys)
	}
}
