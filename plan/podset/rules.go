package podset

import (
	"fmt"
	"math"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/yaml"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// problemsOfClusters: names that are no names, and names that mean the same cluster.
func problemsOfClusters(clusters []v1beta1.TargetCluster) (out []Problem) {
	first := map[string]string{}
	for i := range clusters {
		name := clusters[i].Name
		folded := v1beta1.FoldClusterName(name)
		path := fmt.Sprintf("spec.clusterTopology.clusters[%s].name", name)
		other, twice := first[folded]
		switch {
		case len(validation.IsDNS1123Subdomain(folded)) > 0:
			out = append(out, Problem{path, "no cluster can have this name: " + strings.Join(validation.IsDNS1123Subdomain(folded), "; ")})
		case twice:
			out = append(out, Problem{path, fmt.Sprintf("it is the same cluster as %s: case does not matter in names of clusters, and _ is -", other)})
		default:
			first[folded] = name
		}
	}
	return out
}

// problemsOfValues that are no YAML map, which is what a chart takes.
func problemsOfValues(path, values string) []Problem {
	var parsed map[string]any
	if err := yaml.Unmarshal([]byte(values), &parsed); err != nil {
		why := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
		return []Problem{{path, "these values are no YAML map: " + why}}
	}
	return nil
}

// problemsOfSelector of all children: it has to select their pods.
func problemsOfSelector(s *metav1.LabelSelector, units []Unit) (out []Problem) {
	if s == nil {
		return nil
	}
	const path = "spec.podSpec.selector"
	selector, err := metav1.LabelSelectorAsSelector(s)
	switch {
	case err != nil:
		return []Problem{{path, err.Error()}}
	case selector.Empty():
		return []Problem{{path, "it selects all pods; leave it out to select by app and release"}}
	}
	for i := range units {
		if t := units[i].Content.Template; t != nil && !selector.Matches(labels.Set(t.Labels)) {
			of := "podSet " + units[i].PodSet.Name
			if units[i].Cluster != "" { // an AdvDeployment has none
				of += " in cluster " + units[i].Cluster
			}
			out = append(out, Problem{path, fmt.Sprintf("it does not select the pods of %s, whose labels are %s", of, labels.Set(t.Labels))})
		}
	}
	return out
}

// span is the ids of one unit.
type span struct {
	IDs
	unit *Unit
}

// problemsOfOrdinals: types that have no ids, ids that cannot be counted, and ids that
// two clusters would run.
func problemsOfOrdinals(deployType string, units []Unit, at pathOf) (out []Problem) {
	stated := SharedIDs(units)
	spans := map[string][]span{}
	for i := range units {
		u := &units[i]
		if !stated[u.PodSet.Name] {
			continue
		}
		path := at(u.Cluster, u.PodSet.Name) + ".ordinals"
		if deployType != v1beta1.DeployInPlaceSet && deployType != v1beta1.DeployStatefulSet {
			if u.PodSet.Ordinals != nil {
				out = append(out, Problem{path, fmt.Sprintf("instances of deployType %s have no ids", deployType)})
			}
			continue
		}
		s := span{IDsOf(&u.PodSet.PodSetSpec, int64(u.Replicas)), u}
		if last := s.Last - 1; last > math.MaxInt32 {
			out = append(out, Problem{path, fmt.Sprintf("the last id would be %d, and no id is above %d", last, math.MaxInt32)})
			continue
		}
		if u.Replicas == 0 {
			continue
		}
		for _, other := range spans[u.PodSet.Name] {
			if s.And(other.IDs).Count() > 0 {
				out = append(out, Problem{path, fmt.Sprintf("ids %d to %d overlap with ids %d to %d of the same podSet in cluster %s", s.First, s.Last-1, other.First, other.Last-1, other.unit.Cluster)})
				break
			}
		}
		spans[u.PodSet.Name] = append(spans[u.PodSet.Name], s)
	}
	return out
}
