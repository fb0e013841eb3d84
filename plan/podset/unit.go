// Package podset says what one podSet of one cluster is to be: how many instances, of
// which group, and with which content.
package podset

import (
	"fmt"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// Unit is one podSet in one cluster. It is what a rollout moves.
type Unit struct {
	// Cluster is the name that the topology has for it.
	Cluster string
	// PodSet is its entry in the topology.
	PodSet *v1beta1.PodSet
	// Replicas is the number of instances.
	Replicas int32
	// Group is canary, blue, green or any other that the podSet states; empty: none.
	Group string
	// Version for people: the podSet's, or the tag of its main image.
	Version string
	// Content is everything that reaches its pods, and Hash tells contents apart.
	Content Content
	Hash    string
	// Retained: the content is an earlier one than the spec says, whose chart could not be
	// had.
	Retained bool
	// From is the content of the instances that have not begun to change; nil: all may.
	From *Former
}

// Former is a content that instances have.
type Former struct {
	Content Content
	Hash    string
}

// Problem is something in a spec that cannot be carried out, and Note something that has
// not the effect that it seems to have. Both are one sentence for a field.
type Problem struct{ Field, Why string }

// Note is something in a spec that has not the effect that it seems to have.
type Note Problem

// Units of an AppSet, in the order of its topology. With problems there are none: a unit
// that is left out would be taken for one that is to go.
func Units(a *v1beta1.AppSet) ([]Unit, []Note, []Problem) {
	if problems := problemsOfClusters(a.Spec.ClusterTopology.Clusters); len(problems) > 0 {
		return nil, nil, problems
	}
	return unitsOf(a, inTopology, problemsOfStrategy(&a.Spec.UpdateStrategy, a.Spec.ClusterTopology.Clusters))
}

func inTopology(cluster, podSet string) string {
	return fmt.Sprintf("spec.clusterTopology.clusters[%s].podSets[%s]", cluster, podSet)
}

// pathOf a podSet in the spec that it stands in.
type pathOf func(cluster, podSet string) string

// unitsOf an AppSet. Others are problems of it that are known already, and told with those that the
// podSets have.
func unitsOf(a *v1beta1.AppSet, path pathOf, others []Problem) ([]Unit, []Note, []Problem) {
	deployType, known := v1beta1.DeployTypeOf(&a.Spec.PodSpec)
	if !known {
		return nil, nil, []Problem{{"spec.podSpec.deployType", fmt.Sprintf("%q is none of helm, InPlaceSet, StatefulSet and deployment", a.Spec.PodSpec.DeployType)}}
	}
	if deployType != v1beta1.DeployHelm && a.Spec.PodSpec.Template == nil {
		return nil, nil, []Problem{{"spec.podSpec.template", fmt.Sprintf("deployType %s needs a pod template", deployType)}}
	}
	if deployType == v1beta1.DeployHelm {
		if problems := missingCharts(a, path); len(problems) > 0 {
			return nil, nil, problems
		}
	}
	if problems := tooMany(a); len(problems) > 0 {
		return nil, nil, problems
	}
	replicas, notes, problems := replicasOf(a, path)
	problems = append(problems, others...)
	if len(a.Spec.PodSpec.VolumeClaimTemplates) > 0 && (deployType == v1beta1.DeployDeployment || deployType == v1beta1.DeployHelm) {
		notes = append(notes, Note{"spec.podSpec.volumeClaimTemplates", fmt.Sprintf("claims have no effect with deployType %s", deployType)})
	}
	if a.Spec.PodSpec.RawValues != "" {
		problems = append(problems, problemsOfValues("spec.podSpec.rawValues", a.Spec.PodSpec.RawValues)...)
	}
	if len(problems) > 0 {
		return nil, nil, problems
	}
	var units []Unit
	for c := range a.Spec.ClusterTopology.Clusters {
		cluster := &a.Spec.ClusterTopology.Clusters[c]
		for p := range cluster.PodSets {
			u := Unit{Cluster: cluster.Name, PodSet: &cluster.PodSets[p], Replicas: replicas[len(units)]}
			b := builder{app: a, deployType: deployType, cluster: cluster, podSet: u.PodSet,
				path: path(cluster.Name, u.PodSet.Name)}
			b.build(&u)
			notes, problems = append(notes, b.notes...), append(problems, b.problems...)
			units = append(units, u)
		}
	}
	if len(problems) == 0 {
		problems = append(problemsOfSelector(a.Spec.PodSpec.Selector, units), problemsOfOrdinals(deployType, units, path)...)
	}
	if len(problems) > 0 {
		return nil, nil, problems
	}
	return units, notes, nil
}

// MaxUnits of one AppSet: its status tells of each of them, and has to fit into an object.
const MaxUnits = 1024

func tooMany(a *v1beta1.AppSet) []Problem {
	units := 0
	for i := range a.Spec.ClusterTopology.Clusters {
		units += len(a.Spec.ClusterTopology.Clusters[i].PodSets)
	}
	if units <= MaxUnits {
		return nil
	}
	return []Problem{{"spec.clusterTopology.clusters", fmt.Sprintf("the clusters have %d podSets in all, and the status of at most %d can be stored; make several AppSets of it", units, MaxUnits)}}
}

// missingCharts of podSets for which there is none.
func missingCharts(a *v1beta1.AppSet, path pathOf) (out []Problem) {
	if a.Spec.PodSpec.Chart != nil {
		return nil
	}
	for c := range a.Spec.ClusterTopology.Clusters {
		cluster := &a.Spec.ClusterTopology.Clusters[c]
		for p := range cluster.PodSets {
			if cluster.PodSets[p].Chart == nil {
				out = append(out, Problem{path(cluster.Name, cluster.PodSets[p].Name) + ".chart",
					"deployType helm needs a chart, here or in spec.podSpec.chart"})
			}
		}
	}
	return out
}
