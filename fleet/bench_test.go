package fleet

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// partIn a cluster, of an AppSet with a template of some size, as its worker leaves it.
func partIn(app, cluster int) *v1beta1.AdvDeployment {
	name, where := fmt.Sprintf("app-%d", app), fmt.Sprintf("member-%d", cluster)
	o := partOf(name, where, "nginx")
	o.UID, o.ResourceVersion, o.Generation = types.UID(fmt.Sprintf("5af774f6-9701-41c5-%04d-%012d", app, cluster)), fmt.Sprint(app*1000+cluster), 1
	o.CreationTimestamp = metav1.Unix(int64(1_700_000_000+app+cluster), 0)
	o.Labels = map[string]string{v1beta1.LabelAppSetUID: "5af774f6-9701-41c5-877b-" + name, v1beta1.LabelFleetID: "bc43f7fd-2acc-4ffe-b918-03bd4d04e55b"}
	o.Annotations = map[string]string{v1beta1.AnnotationAppSet: "shop/" + name, v1beta1.AnnotationAppSetGeneration: "1",
		v1beta1.AnnotationApplied: fmt.Sprintf("%016x", app*1000+cluster), v1beta1.AnnotationRevision: fmt.Sprintf("u1-%016x", app*1000+cluster)}
	container := &o.Spec.PodSpec.Template.Spec.Containers[0]
	container.Args = []string{strings.Repeat("x", 1000)}
	for k := range 10 {
		container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", k), Value: "of a value"})
	}
	s := &o.Spec.Topology.PodSets[0]
	s.Name, s.Version, s.Replicas = name, "v1", new(intstr.FromInt32(2))
	o.Status.ObservedGeneration = 1
	o.Status.AggrStatus = v1beta1.AdvDeploymentAggregate{Status: v1beta1.PhaseRunning, Desired: 2, Available: 2, PodSets: []v1beta1.PodSetStatus{{Name: name,
		Desired: 2, Available: 2, Version: "v1", Observed: true, Revision: fmt.Sprintf("u1-%016x", app*1000+cluster+1), Update: new(int32(2)), Current: new(int32(2))}}}
	o.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonSynced, ObservedGeneration: 1, LastTransitionTime: o.CreationTimestamp}}
	return o
}

// BenchmarkParts: what a part of 100 AppSets in 200 clusters takes of memory, and of time to be taken from the cache.
func BenchmarkParts(b *testing.B) {
	const apps, clusters = 100, 200
	var before, after runtime.MemStats
	shared := &packer{}
	var all []*parts
	runtime.GC()
	runtime.ReadMemStats(&before)
	for cluster := range clusters {
		p := newParts(clock.RealClock{}, shared, func(types.NamespacedName) {}, func() {})
		var list []any
		for app := range apps {
			text, err := json.Marshal(partIn(app, cluster))
			if err != nil {
				b.Fatal(err)
			}
			o := &v1beta1.AdvDeployment{}
			if err := json.Unmarshal(text, o); err != nil {
				b.Fatal(err)
			}
			gathered, err := p.Transformer()(o)
			if err != nil {
				b.Fatal(err)
			}
			list = append(list, gathered)
		}
		if err := p.Replace(list, "1"); err != nil {
			b.Fatal(err)
		}
		all = append(all, p)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	key := types.NamespacedName{Namespace: "shop", Name: "app-7"}
	for n := 0; b.Loop(); n++ {
		if all[n%clusters].get(key).unpack() == nil {
			b.Fatal("the part is not there")
		}
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/apps/clusters, "bytes/part")
	runtime.KeepAlive(all)
}
