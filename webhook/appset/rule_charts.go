package appset

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/helm/archive"
	"tkestack.io/tapp/plan/message"
)

// maxRawCharts is how many bytes the raw archives of one AppSet may have in all: each of
// its versions is stored with them, and an object ends at 1.5 MiB.
const maxRawCharts = 768 << 10

// judgeCharts rejects archives that cannot be stored.
func judgeCharts(a *v1beta1.AppSet) field.ErrorList {
	sum := 0
	charts(a, func(_ string, c *v1beta1.ChartSpec) { sum += len(c.RawChart) })
	if sum <= maxRawCharts {
		return nil
	}
	return field.ErrorList{invalid("spec.podSpec.chart.rawChart", fmt.Sprintf("the raw archives have %d bytes in all, and at most %d can be stored; put the chart into a repository and give its chartUrl", sum, maxRawCharts))}
}

// adviseCharts warns of fields that have no effect, and of what a chart uses of Helm that is
// not done. One that is to be fetched is not looked at.
func adviseCharts(a, _ *v1beta1.AppSet) (out []string) {
	deployType, _ := v1beta1.DeployTypeOf(&a.Spec.PodSpec)
	helm := deployType == v1beta1.DeployHelm
	if helm && a.Spec.PodSpec.Template != nil {
		out = append(out, "spec.podSpec.template: it has no effect with deployType helm: the chart has its own")
	}
	if !helm && a.Spec.PodSpec.RawValues != "" {
		out = append(out, fmt.Sprintf("spec.podSpec.rawValues: values have no effect with deployType %s", deployType))
	}
	archives := archive.NewReader()
	charts(a, func(path string, c *v1beta1.ChartSpec) {
		switch {
		case !helm:
			out = append(out, fmt.Sprintf("%s: a chart has no effect with deployType %s", path, deployType))
		case len(c.RawChart) > 0 && c.ChartURL != nil:
			out = append(out, path+".chartUrl: it has no effect, since rawChart is used")
		}
		if helm {
			for _, undone := range archives.Undone(c.RawChart) {
				out = append(out, path+".rawChart: "+message.Cut(undone, maxLine))
			}
		}
	})
	return out
}

// charts calls f for each chart.
func charts(a *v1beta1.AppSet, f func(path string, c *v1beta1.ChartSpec)) {
	if c := a.Spec.PodSpec.Chart; c != nil {
		f("spec.podSpec.chart", c)
	}
	for i := range a.Spec.ClusterTopology.Clusters {
		cluster := &a.Spec.ClusterTopology.Clusters[i]
		for j := range cluster.PodSets {
			if c := cluster.PodSets[j].Chart; c != nil {
				f(fmt.Sprintf("spec.clusterTopology.clusters[%s].podSets[%s].chart", cluster.Name, cluster.PodSets[j].Name), c)
			}
		}
	}
}
