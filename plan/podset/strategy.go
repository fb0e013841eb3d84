package podset

import (
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// problemsOfStrategy: numbers that are none, and stages that name clusters or groups which
// the topology has not.
func problemsOfStrategy(s *v1beta1.UpdateStrategy, clusters []v1beta1.TargetCluster) (out []Problem) {
	const path = "spec.updateStrategy"
	limit := func(field string, value *intstr.IntOrString, least int) {
		if why := problemOfLimit(value, least); why != "" {
			out = append(out, Problem{field, why})
		}
	}
	limit(path+".maxConcurrentClusters", s.MaxConcurrentClusters, 1)
	limit(path+".maxUnavailable", s.MaxUnavailable, 1)
	limit(path+".maxFailures", s.MaxFailures, 0)
	known, groups := map[string]bool{}, map[string]bool{}
	for i := range clusters {
		known[v1beta1.FoldClusterName(clusters[i].Name)] = true
		for j := range clusters[i].PodSets {
			groups[GroupOf(&clusters[i].PodSets[j])] = true
		}
	}
	for i := range s.Stages {
		stage := &s.Stages[i]
		at := fmt.Sprintf("%s.stages[%s]", path, stage.Name)
		limit(at+".maxConcurrentClusters", stage.MaxConcurrentClusters, 1)
		if _, err := metav1.LabelSelectorAsSelector(stage.ClusterSelector); err != nil {
			out = append(out, Problem{at + ".clusterSelector", err.Error()})
		}
		for _, name := range stage.Clusters {
			if !known[v1beta1.FoldClusterName(name)] {
				out = append(out, Problem{at + ".clusters", fmt.Sprintf("%s is not among clusterTopology.clusters: add it there, or drop it here", name)})
			}
		}
		for _, group := range stage.Groups {
			if !groups[group] {
				out = append(out, Problem{at + ".groups", fmt.Sprintf("no podSet is in group %s: have one say so in its meta (%s), or drop it here", group, v1beta1.LabelGroup)})
			}
		}
	}
	return out
}

// problemOfLimit: why a number or percentage is none, or is below the least one that lets
// anything happen; empty: it is good.
func problemOfLimit(value *intstr.IntOrString, least int) string {
	if value == nil {
		return ""
	}
	n, text := int(value.IntVal), value.String()
	if value.Type == intstr.String {
		digits, ok := strings.CutSuffix(text, "%")
		percent, err := strconv.Atoi(digits)
		if !ok || err != nil || strconv.Itoa(percent) != digits || percent > 100 {
			return fmt.Sprintf("%q is no number, and no percentage from %d%% to 100%%", text, least)
		}
		n = percent
	}
	switch {
	case n < 0:
		return fmt.Sprintf("%s is negative; give a number from %d on, or a percentage from %d%% to 100%%", text, least, least)
	case n < least:
		return fmt.Sprintf("with %s no update could start; give a number above 0, or a percentage from 1%% to 100%%", text)
	}
	return ""
}
