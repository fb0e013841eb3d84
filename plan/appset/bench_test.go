package appset

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// benchmarked tells a benchmark like a test.
type benchmarked struct{ *testing.B }

func (b benchmarked) Fatalf(format string, args ...any) { b.B.Fatalf(format, args...) }

// BenchmarkFleet plans an AppSet: its installation, and when it runs in all its clusters, at rest and in the
// midst of a rollout.
func BenchmarkFleet(b *testing.B) {
	for _, size := range []struct{ clusters, podSets int }{{200, 1}, {50, 20}} {
		w := large(benchmarked{b}, size.clusters, size.podSets)
		first := w.input()
		for len(Compute(first).Actions) == 0 { // it gets its finalizer before its parts
			w.step()
			first = w.input()
		}
		w.install()
		rest := w.input()
		w.edit(func(a *v1beta1.AppSet) { a.Spec.PodSpec.Template.Spec.Containers[0].Image = "nginx:2" })
		for range 3 {
			w.step()
		}
		for _, at := range []struct {
			name string
			in   Input
		}{{"installation", first}, {"rest", rest}, {"rollout", w.input()}} {
			b.Run(fmt.Sprintf("%dx%d/%s", size.clusters, size.podSets, at.name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					Compute(at.in)
				}
			})
		}
	}
}

// large is a fleet with one AppSet, which runs in all its clusters.
func large(t tester, clusters, podSets int) *world {
	var names []string
	for i := range clusters {
		names = append(names, fmt.Sprintf("member-%d", i))
	}
	w := newWorld(t, web, names...)
	spec := &w.app.Spec
	container := &spec.PodSpec.Template.Spec.Containers[0]
	container.Args = []string{strings.Repeat("x", 1000)}
	for k := range 10 {
		container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", k), Value: "of a value"})
	}
	spec.Replicas, spec.ClusterTopology.Clusters = new(int32(2*clusters*podSets)), nil
	spec.UpdateStrategy.MaxUnavailable = new(intstr.FromString("10%"))
	for _, name := range names {
		target := v1beta1.TargetCluster{Name: name}
		for k := range podSets {
			target.PodSets = append(target.PodSets, v1beta1.PodSet{PodSetSpec: v1beta1.PodSetSpec{Name: fmt.Sprintf("web-%d", k), Version: "v1", Replicas: new(intstr.FromInt32(2))}})
		}
		spec.ClusterTopology.Clusters = append(spec.ClusterTopology.Clusters, target)
	}
	return w
}
