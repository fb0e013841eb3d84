package kwok

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/utils/gotpl"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"
	"sigs.k8s.io/yaml"
)

func load(t testing.TB) []config.InternalObject {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kwok.yaml")
	if err := os.WriteFile(file, Config(), 0o600); err != nil {
		t.Fatal(err)
	}
	objects, err := config.Load(context.Background(), file)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func stages(t testing.TB, kind string) lifecycle.Lifecycle {
	t.Helper()
	var of []*internalversion.Stage
	for _, s := range config.FilterWithType[*internalversion.Stage](load(t)) {
		if s.Spec.ResourceRef.Kind == kind {
			of = append(of, s)
		}
	}
	all, err := lifecycle.NewLifecycle(of)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestConfig(t *testing.T) {
	objects := load(t)
	settings := config.FilterWithType[*internalversion.KwokConfiguration](objects)
	if len(settings) != 1 || settings[0].Options.PodPlayStageParallelism < 16 || settings[0].Options.PodsOnNodeSyncParallelism < 2 {
		t.Errorf("settings %+v", settings)
	}
	if stages := config.FilterWithType[*internalversion.Stage](objects); len(stages) != 4 {
		t.Errorf("%d stages", len(stages))
	}
}

func TestNodesBecomeReady(t *testing.T) {
	for _, tainted := range []bool{true, false} {
		node := &corev1.Node{}
		if err := yaml.UnmarshalStrict(Nodes(1, tainted)[len("---\n"):], node); err != nil {
			t.Fatal(err)
		}
		if node.Name != "kwok-0" || node.Status.Allocatable.Pods().Value() != 1000 || (len(node.Spec.Taints) == 1) != tainted {
			t.Errorf("node %s", dump(node))
		}
		all := stages(t, "Node")
		render := gotpl.NewRenderer(gotpl.FuncMap{
			"NodeName": func() string { return "" }, "NodeIP": func() string { return "10.0.0.1" }, "NodePort": func() int { return 0 },
		})
		stage, err := all.Match(context.Background(), &lifecycle.Event{Data: node})
		if err != nil || stage == nil || stage.Name() != "node-initialize" {
			t.Fatalf("stage %v: %v", stage, err)
		}
		k := &patched[corev1.Node]{t: t, object: node}
		if _, err := stage.DoSteps(0, nil, node, render, nil, nil, k.patch, nil); err != nil {
			t.Fatal(err)
		}
		if c := k.object.Status.Conditions[0]; c.Type != corev1.NodeReady || c.Status != corev1.ConditionTrue {
			t.Errorf("condition %+v", c)
		}
		stage, err = all.Match(context.Background(), &lifecycle.Event{Data: k.object})
		if err != nil || stage == nil || stage.Name() != "node-heartbeat" {
			t.Fatalf("stage %v: %v", stage, err)
		}
	}
}

func running(b *testing.B) *kubelet {
	b.Helper()
	k := newKubelet(b)
	k.t = &testing.T{}
	k.run(gated, "nginx:1.7.9", "sidecar:v1")
	return k
}

// What KWOK spends in its one preprocessing goroutine for each pod event.
func BenchmarkMatch(b *testing.B) {
	k := running(b)
	for b.Loop() {
		if stage, err := k.stages.Match(context.Background(), &lifecycle.Event{Data: k.pod}); stage != nil || err != nil {
			b.Fatal(stage, err)
		}
	}
}

// What one of its workers spends to compute a status: of containers, or only of a gate.
func BenchmarkRender(b *testing.B) {
	b.Run("containers", func(b *testing.B) { render(b, func(p *corev1.Pod) { p.Generation++ }) })
	b.Run("gate", func(b *testing.B) {
		render(b, func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: gate, Status: corev1.ConditionTrue})
		})
	})
}

func render(b *testing.B, change func(*corev1.Pod)) {
	b.Helper()
	k := running(b)
	change(k.pod)
	stage, err := k.stages.Match(context.Background(), &lifecycle.Event{Data: k.pod})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := stage.DoSteps(0, nil, k.pod, k.render, nil, nil, func(*lifecycle.Patch) error { return nil }, nil); err != nil {
			b.Fatal(err)
		}
	}
}
