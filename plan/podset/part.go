package podset

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/template"
)

// Part is the spec of the AdvDeployment of one cluster, of whose units it is made. What
// depends on other clusters is resolved in it, so that the units of the part have the
// content that they have in the AppSet. It shares with the AppSet what is equal in both.
func Part(a *v1beta1.AppSet, units []Unit) v1beta1.AdvDeploymentSpec {
	spec := v1beta1.AdvDeploymentSpec{
		ServiceName: a.Spec.ServiceName,
		PodSpec:     a.Spec.PodSpec,
		UpdateStrategy: v1beta1.UpdateStrategy{
			MinReadySeconds: a.Spec.UpdateStrategy.MinReadySeconds,
			Paused:          a.Spec.UpdateStrategy.Paused,
		},
	}
	if limit := a.Spec.RevisionHistoryLimit; limit != nil {
		spec.RevisionHistoryLimit = new(*limit)
	}
	if deployType, _ := v1beta1.DeployTypeOf(&a.Spec.PodSpec); deployType == v1beta1.DeployHelm {
		// Each podSet has its chart, by digest: an archive is in no object twice.
		spec.PodSpec.DeployType, spec.PodSpec.Chart = deployType, nil
	}
	for i := range units {
		spec.Topology.PodSets = append(spec.Topology.PodSets, placed(a, &units[i]))
	}
	return spec
}

func placed(a *v1beta1.AppSet, u *Unit) v1beta1.PlacedPodSet {
	p := v1beta1.PlacedPodSet{PodSetSpec: *u.PodSet.PodSetSpec.DeepCopy()}
	p.Replicas = new(intstr.FromInt32(u.Replicas))
	p.Meta = metaOf(a, u)
	if chart := u.Content.Chart; chart != nil {
		p.Chart = placedChart(a, u)
	}
	return p
}

// placedChart is the Secret with the archive, and for people where it comes from. A chart
// that nobody has fetched has no Secret; what the podSet has instead is in a revision.
func placedChart(a *v1beta1.AppSet, u *Unit) *v1beta1.PlacedChart {
	chart := u.PodSet.Chart
	if chart == nil {
		chart = a.Spec.PodSpec.Chart
	}
	out := &v1beta1.PlacedChart{}
	if chart != nil && len(chart.RawChart) == 0 {
		out.ChartURL = chart.ChartURL.DeepCopy()
	}
	if u.Content.Chart.Digest != "" && !u.Retained {
		out.SecretRef = &corev1.LocalObjectReference{Name: u.Content.Chart.SecretName()}
	}
	return out
}

// metaOf a unit: all that is said of its metadata, in the order of builder.metadata. What
// follows there from the podSet alone, or from the cluster, is stated.
func metaOf(a *v1beta1.AppSet, u *Unit) map[string]string {
	meta := map[string]string{}
	maps.Copy(meta, a.Spec.Labels)
	maps.Copy(meta, a.Spec.Meta)
	for i := range a.Spec.ClusterTopology.Clusters {
		if cluster := &a.Spec.ClusterTopology.Clusters[i]; cluster.Name == u.Cluster {
			maps.Copy(meta, cluster.Meta)
		}
	}
	maps.Copy(meta, u.PodSet.Meta)
	for key, value := range map[string]string{v1beta1.LabelGroup: GroupOf(u.PodSet), v1beta1.LabelLDC: ldcOf(u.PodSet)} {
		if value != "" {
			meta[key] = value
		}
	}
	if meta[v1beta1.LabelCluster] == "" {
		meta[v1beta1.LabelCluster] = u.Cluster
	}
	return meta
}

// Revision is the hash of the content of units together. Their order does not matter, nor
// how many instances they have.
func Revision(units []Unit) string {
	lines := make([]string, 0, len(units))
	for i := range units {
		lines = append(lines, v1beta1.FoldClusterName(units[i].Cluster)+"/"+units[i].PodSet.Name+"="+units[i].Hash)
	}
	slices.Sort(lines)
	return hashPrefix + template.Digest([]byte(strings.Join(lines, "\n")))
}
