package template

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestCompareRealPods: pods that a real API server (1.37) defaulted, admitted and
// bound to nodes are what their templates would make. Each file holds a template
// and the pod that was made from it.
func TestCompareRealPods(t *testing.T) {
	files, err := filepath.Glob("testdata/match/*.json")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var made struct {
			Template corev1.PodTemplateSpec
			Pod      *corev1.Pod
		}
		if err := json.Unmarshal(data, &made); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		want := &corev1.Pod{ObjectMeta: made.Template.ObjectMeta, Spec: made.Template.Spec}
		if d := Compare(made.Pod, want); !d.None {
			t.Errorf("%s: %+v", file, d)
		}
		pinned := made.Pod.DeepCopy()
		RequireNode(&pinned.Spec, "node-1")
		if d := Compare(pinned, want); !d.None {
			t.Errorf("%s with the node affinity of neverMigrate: %+v", file, d)
		}
		want.Spec.Containers[0].Env = append(want.Spec.Containers[0].Env, corev1.EnvVar{Name: "NEW"})
		if d := Compare(made.Pod, want); d.None || d.ImagesOnly || len(d.Fields) != 1 {
			t.Errorf("%s with another variable: %+v", file, d)
		}
	}
}
