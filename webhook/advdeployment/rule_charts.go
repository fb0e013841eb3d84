package advdeployment

import (
	"fmt"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/helm/archive"
	"tkestack.io/tapp/plan/message"
)

// maxLine is how long a sentence about a chart may be, in bytes.
const maxLine = 320

// adviseCharts warns of fields that have no effect, and of what a chart uses of Helm that is
// not done, as for AppSets.
func adviseCharts(a, _ *v1beta1.AdvDeployment) (out []string) {
	deployType, _ := v1beta1.DeployTypeOf(&a.Spec.PodSpec)
	helm := deployType == v1beta1.DeployHelm
	if helm && a.Spec.PodSpec.Template != nil {
		out = append(out, "spec.podSpec.template: it has no effect with deployType helm: the chart has its own")
	}
	if !helm && a.Spec.PodSpec.RawValues != "" {
		out = append(out, fmt.Sprintf("spec.podSpec.rawValues: values have no effect with deployType %s", deployType))
	}
	archives := archive.NewReader()
	advise := func(path string, raw []byte, url *v1beta1.ChartURL, stored bool) {
		switch {
		case !helm:
			out = append(out, fmt.Sprintf("%s: a chart has no effect with deployType %s", path, deployType))
		case stored && len(raw) > 0:
			out = append(out, path+".rawChart: it has no effect, since the archive in secretRef is used")
		case !stored && len(raw) > 0 && url != nil:
			out = append(out, path+".chartUrl: it has no effect, since rawChart is used")
		}
		if helm && !stored {
			for _, undone := range archives.Undone(raw) {
				out = append(out, path+".rawChart: "+message.Cut(undone, maxLine))
			}
		}
	}
	if c := a.Spec.PodSpec.Chart; c != nil {
		advise("spec.podSpec.chart", c.RawChart, c.ChartURL, false)
	}
	for i := range a.Spec.Topology.PodSets {
		p := &a.Spec.Topology.PodSets[i]
		if c := p.Chart; c != nil {
			advise(fmt.Sprintf("spec.topology.podSets[%s].chart", p.Name), c.RawChart, c.ChartURL, c.SecretRef != nil)
		}
	}
	return out
}
