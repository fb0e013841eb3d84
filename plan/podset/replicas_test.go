package podset

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// appOf has one cluster whose podSets have these replicas: "3", "20%", or "" for none.
func appOf(total *int32, replicas ...string) *v1beta1.AppSet {
	a := &v1beta1.AppSet{}
	a.Name, a.Spec.Replicas = "web", total
	cluster := v1beta1.TargetCluster{Name: "c"}
	for i, r := range replicas {
		p := v1beta1.PodSet{PodSetSpec: v1beta1.PodSetSpec{Name: fmt.Sprintf("p%d", i)}}
		if r != "" {
			p.Replicas = new(intstr.Parse(r))
		}
		cluster.PodSets = append(cluster.PodSets, p)
	}
	a.Spec.ClusterTopology.Clusters = []v1beta1.TargetCluster{cluster}
	return a
}

func TestReplicas(t *testing.T) {
	ten := new(int32(10))
	for _, c := range []struct {
		name     string
		total    *int32
		replicas []string
		want     []int32
		notes    string
	}{
		{"numbers win", ten, []string{"1", "2", "2"}, []int32{1, 2, 2}, "spec.replicas: the podSets have 5 instances of their own, so that 10 has no effect"},
		{"numbers alone", nil, []string{"1", "2"}, []int32{1, 2}, ""},
		{"percentages", ten, []string{"20%", "80%"}, []int32{2, 8}, ""},
		{"a third each, the first ones first", ten, []string{"33%", "33%", "34%"}, []int32{3, 3, 4}, ""},
		{"equals by position", new(int32(1)), []string{"50%", "50%"}, []int32{1, 0}, "spec.clusterTopology.clusters[c].podSets[p1].replicas: 50% of 1 instances is none"},
		{"what is left", ten, []string{"3", "", "20%", ""}, []int32{3, 3, 2, 2}, ""},
		{"nothing is left", ten, []string{"10", ""}, []int32{10, 0}, ""},
		{"more than there is", ten, []string{"12", ""}, []int32{12, 0}, ""},
		{"shares of none", ten, []string{"", "", ""}, []int32{4, 3, 3}, ""},
		{"0% is meant", ten, []string{"0%", "100%"}, []int32{0, 10}, ""},
		{"zero", new(int32(0)), []string{"", "50%"}, []int32{0, 0}, "spec.clusterTopology.clusters[c].podSets[p1].replicas: 50% of 0 instances is none"},
		{"more than all", ten, []string{"100%", "100%"}, []int32{10, 10}, ""},
		{"no podSets", ten, nil, []int32{}, "spec.replicas: there is no podSet that has instances, so that 10 has no effect"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, notes, problems := replicasOf(appOf(c.total, c.replicas...), inTopology)
			var told []string
			for _, n := range notes {
				told = append(told, n.Field+": "+n.Why)
			}
			if !slices.Equal(got, c.want) || len(problems) > 0 || strings.Join(told, "; ") != c.notes {
				t.Errorf("%v, %q, %v", got, told, problems)
			}
		})
	}
}

func TestReplicasRefused(t *testing.T) {
	const field = "spec.clusterTopology.clusters[c].podSets[p0].replicas: "
	for _, c := range []struct {
		total    *int32
		replicas []string
		want     string
	}{
		{new(int32(1)), []string{"101%"}, field + `"101%" is no number, and no percentage from 0% to 100%`},
		{new(int32(1)), []string{"+5%"}, field + `"+5%" is no number, and no percentage from 0% to 100%`},
		{new(int32(1)), []string{"half"}, field + `"half" is no number, and no percentage from 0% to 100%`},
		{new(int32(1)), []string{"-1"}, field + "-1 is negative"},
		{nil, []string{"50%"}, field + "it is a part of spec.replicas, which is absent: give that, or a number here"},
		{nil, []string{""}, field + "it is a part of spec.replicas, which is absent: give that, or a number here"},
		{nil, []string{"2147483647", "1"}, "spec.clusterTopology.clusters: the podSets ask for 2147483648 instances, and no more than 2147483647 can be counted"},
	} {
		_, _, problems := replicasOf(appOf(c.total, c.replicas...), inTopology)
		if len(problems) != 1 || problems[0].Field+": "+problems[0].Why != c.want {
			t.Errorf("%v: %v\nwant %s", c.replicas, problems, c.want)
		}
	}
}

// TestApportion: it is the method of Sainte-Laguë, seat by seat; so it is monotone.
func TestApportion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Int64Range(0, 100), 1, 8).Draw(t, "weights")
		if slices.Max(weights) == 0 {
			return
		}
		want := make([]int32, len(weights))
		for seats := range int64(60) {
			got := make([]int32, len(weights))
			apportion(got, weights, seats)
			if !slices.Equal(got, want) {
				t.Fatalf("%d seats: %v, want %v", seats, got, want)
			}
			best := -1
			for i, w := range weights {
				if w > 0 && (best < 0 || w*(2*int64(want[best])+1) > weights[best]*(2*int64(want[i])+1)) {
					best = i
				}
			}
			want[best]++
		}
	})
}
