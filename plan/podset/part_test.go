package podset

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// TestPartKeepsContent: whatever an AppSet says, the units of its parts have the content
// and the instances that they have in it.
func TestPartKeepsContent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.Custom(someAppSet).Filter(isValid).Draw(t, "AppSet")
		units, _, _ := Units(a)
		for _, cluster := range a.Spec.ClusterTopology.Clusters {
			var own []Unit
			for _, u := range units {
				if u.Cluster == cluster.Name {
					own = append(own, u)
				}
			}
			placed, _, problems := Placed(&v1beta1.AdvDeployment{ObjectMeta: a.ObjectMeta, Spec: Part(a, own)})
			if len(problems) > 0 || len(placed) != len(own) {
				t.Fatalf("cluster %s: %d units of %d, %v", cluster.Name, len(placed), len(own), problems)
			}
			for i := range own {
				if own[i].Hash != placed[i].Hash || own[i].Replicas != placed[i].Replicas || own[i].Version != placed[i].Version {
					t.Fatalf("cluster %s: unit\n%+v\nbecame\n%+v", cluster.Name, own[i], placed[i])
				}
			}
		}
	})
}

func isValid(a *v1beta1.AppSet) bool {
	_, _, problems := Units(a)
	return len(problems) == 0
}

// someAppSet with every way to say what its units are.
func someAppSet(t *rapid.T) *v1beta1.AppSet {
	a := &v1beta1.AppSet{}
	meta := func(of string) map[string]string {
		return rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "version", "sym-group", "sym-ldc", "sym-cluster-info", "lightningDomain0"}),
			rapid.SampledFrom([]string{"", "x", "canary", "no label value"}), 0, 4).Draw(t, of)
	}
	word := func(of string, words ...string) string { return rapid.SampledFrom(words).Draw(t, of) }
	a.Name = "bbcc"
	a.Spec.Labels, a.Spec.Meta = meta("labels"), meta("meta")
	a.Spec.Replicas = new(rapid.Int32Range(0, 20).Draw(t, "replicas"))
	a.Spec.ServiceName = word("service", "", "web", "inner.bbcc.dmall.com")
	a.Spec.PodSpec = *read(t, "spec: {podSpec: {deployType: tapp, template: {metadata: {labels: {a: t}}, spec: {containers: [{name: bbcc, image: nginx}]}}}}").Spec.PodSpec.DeepCopy()
	if rapid.Bool().Draw(t, "helm") {
		a.Spec.PodSpec = v1beta1.PodSpec{Chart: &v1beta1.ChartSpec{ChartURL: &v1beta1.ChartURL{URL: "dmall/a"}}, RawValues: word("rawValues", "", "a: 1")}
	}
	for c := range rapid.IntRange(1, 3).Draw(t, "clusters") {
		cluster := v1beta1.TargetCluster{Name: fmt.Sprintf("TCC_%d", c), Meta: meta("cluster meta")}
		for p := range rapid.IntRange(0, 3).Draw(t, "podSets") {
			podSet := v1beta1.PodSet{}
			podSet.Name = fmt.Sprintf("bbcc%d-%s", p, word("name", "x", "gz01b-blue", "rz1-svc"))
			podSet.Image, podSet.Version, podSet.Meta = word("image", "", "httpd", "nginx:1"), word("version", "", "v4"), meta("podSet meta")
			podSet.Replicas = rapid.SampledFrom([]*intstr.IntOrString{nil, new(intstr.FromInt32(3)), new(intstr.FromString("30%"))}).Draw(t, "replicas")
			if a.Spec.PodSpec.Chart != nil {
				podSet.RawValues = word("values", "", "b: 2")
				if rapid.Bool().Draw(t, "own chart") {
					podSet.Chart = &v1beta1.ChartSpec{RawChart: []byte("\x1f\x8bchart")}
				}
			}
			cluster.PodSets = append(cluster.PodSets, podSet)
		}
		a.Spec.ClusterTopology.Clusters = append(a.Spec.ClusterTopology.Clusters, cluster)
	}
	return a
}

// TestRevision: order and instances do not matter, content and place do.
func TestRevision(t *testing.T) {
	units, _, _ := Units(read(t, example))
	plain := Revision(units)
	if Revision([]Unit{units[2], units[0], units[1]}) != plain {
		t.Error("the order of units matters")
	}
	if Revision(units[:2]) == plain {
		t.Error("a unit more is no other revision")
	}
	units[0].Replicas++
	if Revision(units) != plain {
		t.Error("instances matter")
	}
	units[0].Hash = "u1-x"
	if Revision(units) == plain {
		t.Error("another content is no other revision")
	}
}
