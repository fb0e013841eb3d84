package podset

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// History is what of an AppSet reaches pods, as it was. A revision stores it: the contents
// of all units follow from it.
type History struct {
	Labels          map[string]string       `json:"labels,omitempty"`
	Meta            map[string]string       `json:"meta,omitempty"`
	Replicas        *int32                  `json:"replicas,omitempty"`
	ServiceName     string                  `json:"serviceName,omitempty"`
	PodSpec         v1beta1.PodSpec         `json:"podSpec,omitzero"`
	ClusterTopology v1beta1.ClusterTopology `json:"clusterTopology,omitzero"`
	// Charts are the digests of the units' charts, by cluster and podSet.
	Charts map[string]string `json:"charts,omitempty"`
	// Retained are the contents of units that had others than their specs say.
	Retained map[string]Content `json:"retained,omitempty"`
}

// Retain has a unit keep the content of another one.
func (u *Unit) Retain(from *Unit) {
	u.Content, u.Hash, u.Version, u.Retained = from.Content, from.Hash, from.Version, true
}

// HistoryOf an AppSet, and of its units.
func HistoryOf(a *v1beta1.AppSet, units []Unit) History {
	s := a.Spec.DeepCopy()
	out := History{Labels: s.Labels, Meta: s.Meta, Replicas: s.Replicas, ServiceName: s.ServiceName, PodSpec: s.PodSpec, ClusterTopology: s.ClusterTopology}
	for i := range units {
		if units[i].Retained {
			if out.Retained == nil {
				out.Retained = map[string]Content{}
			}
			out.Retained[units[i].Cluster+"/"+units[i].PodSet.Name] = units[i].Content
		}
		if chart := units[i].Content.Chart; chart != nil && chart.Digest != "" {
			if out.Charts == nil {
				out.Charts = map[string]string{}
			}
			out.Charts[units[i].Cluster+"/"+units[i].PodSet.Name] = chart.Digest
		}
	}
	return out
}

// HistoryOfParts is that of an AppSet of which only the parts are known: what they have is
// taken for what was asked for, but for podSets that skip names. Where their podSpecs differ,
// that of the last one counts that goes by its own.
func HistoryOfParts(parts map[string]*v1beta1.AdvDeployment, order []string, skip func(cluster, podSet string) bool) *History {
	var out *History
	for _, name := range order {
		part := parts[name]
		if part == nil {
			continue
		}
		if out == nil {
			out = &History{ServiceName: part.Spec.ServiceName, PodSpec: *part.Spec.PodSpec.DeepCopy(), Charts: map[string]string{}, Retained: map[string]Content{}}
		}
		spec := part.Spec.DeepCopy()
		cluster := v1beta1.TargetCluster{Name: name}
		for _, placed := range spec.Topology.PodSets {
			if skip(name, placed.Name) {
				continue
			}
			podSet := v1beta1.PodSet{PodSetSpec: placed.PodSetSpec}
			if placed.Chart != nil {
				podSet.Chart = &v1beta1.ChartSpec{RawChart: placed.Chart.RawChart, ChartURL: placed.Chart.ChartURL}
				if placed.Chart.SecretRef != nil {
					out.Charts[name+"/"+placed.Name] = DigestIn(placed.Chart.SecretRef)
				}
			}
			held := &Unit{}
			if placed.Revision != "" && held.holdBack(spec.Revisions, placed.Revision) == "" {
				out.Retained[name+"/"+placed.Name] = held.Content
			} else {
				out.ServiceName, out.PodSpec = spec.ServiceName, spec.PodSpec
			}
			cluster.PodSets = append(cluster.PodSets, podSet)
		}
		out.ClusterTopology.Clusters = append(out.ClusterTopology.Clusters, cluster)
	}
	return out
}

// As it was: the AppSet with the contents of its history, in the clusters and with the
// numbers that it has now. What the history does not know is left out, but for clusters
// that joined: those have what a podSet of the history had that is written as theirs is
// now. The units are in the order of that AppSet; those of the AppSet as it is are given.
func (h *History) As(a *v1beta1.AppSet, now []Unit) (*v1beta1.AppSet, []Unit) {
	then := a.DeepCopy()
	s := &then.Spec
	s.Labels, s.Meta, s.ServiceName, s.PodSpec = h.Labels, h.Meta, h.ServiceName, h.PodSpec
	siblings := h.siblings(a)
	for i := range s.ClusterTopology.Clusters {
		cluster := &s.ClusterTopology.Clusters[i]
		was := clusterIn(&h.ClusterTopology, cluster.Name)
		if was != nil {
			cluster.Meta = was.Meta
		}
		var podSets []v1beta1.PodSet
		for p := range cluster.PodSets {
			podSet := cluster.PodSets[p]
			old := siblings[written(&podSet)]
			if was != nil {
				old = podSetIn(was, podSet.Name)
			}
			switch {
			case old != nil:
				podSet.Image, podSet.Version, podSet.Chart, podSet.RawValues = old.Image, old.Version, old.Chart, old.RawValues
				if was != nil {
					podSet.Meta, podSet.NodeSelectorTerm = old.Meta, old.NodeSelectorTerm
				}
			case was != nil:
				continue
			}
			podSets = append(podSets, podSet)
		}
		cluster.PodSets = podSets
	}
	placeReplicas(then, now)
	// The clusters are those of now, and stages may name groups that the history does not have.
	units, _, problems := unitsOf(then, inTopology, nil)
	if len(problems) > 0 {
		return then, nil
	}
	for i := range units {
		if digest := h.Charts[units[i].Cluster+"/"+units[i].PodSet.Name]; digest != "" {
			if err := units[i].Pin(digest); err != nil {
				return then, nil
			}
		}
		if content, is := h.Retained[units[i].Cluster+"/"+units[i].PodSet.Name]; is {
			hash, err := content.hash()
			if err != nil {
				return then, nil
			}
			units[i].Content, units[i].Hash, units[i].Version, units[i].Retained = content, hash, content.versionOr(units[i].Version), true
		}
	}
	return then, units
}

// placeReplicas has the podSets have as many instances as they are now: percentages depend on all of them.
func placeReplicas(then *v1beta1.AppSet, now []Unit) {
	numbers := map[string]int32{}
	for i := range now {
		numbers[now[i].Cluster+"/"+now[i].PodSet.Name] = now[i].Replicas
	}
	for i := range then.Spec.ClusterTopology.Clusters {
		cluster := &then.Spec.ClusterTopology.Clusters[i]
		for p := range cluster.PodSets {
			cluster.PodSets[p].Replicas = new(intstr.FromInt32(numbers[cluster.Name+"/"+cluster.PodSets[p].Name]))
		}
	}
}

// siblings are podSets of the history by what is written of them now.
func (h *History) siblings(a *v1beta1.AppSet) map[string]*v1beta1.PodSet {
	out := map[string]*v1beta1.PodSet{}
	for i := range a.Spec.ClusterTopology.Clusters {
		cluster := &a.Spec.ClusterTopology.Clusters[i]
		was := clusterIn(&h.ClusterTopology, cluster.Name)
		if was == nil {
			continue
		}
		for p := range cluster.PodSets {
			key := written(&cluster.PodSets[p])
			if old := podSetIn(was, cluster.PodSets[p].Name); old != nil && out[key] == nil {
				out[key] = old
			}
		}
	}
	return out
}

// written is what is said of a podSet's content, in a form that can be compared.
func written(p *v1beta1.PodSet) string {
	text, _ := json.Marshal([]any{GroupOf(p), p.Image, p.Version, p.Chart, p.RawValues})
	return string(text)
}

func clusterIn(t *v1beta1.ClusterTopology, name string) *v1beta1.TargetCluster {
	for i := range t.Clusters {
		if v1beta1.FoldClusterName(t.Clusters[i].Name) == v1beta1.FoldClusterName(name) {
			return &t.Clusters[i]
		}
	}
	return nil
}

func podSetIn(c *v1beta1.TargetCluster, name string) *v1beta1.PodSet {
	for i := range c.PodSets {
		if c.PodSets[i].Name == name {
			return &c.PodSets[i]
		}
	}
	return nil
}

// HoldBack has the podSet of a part keep a content, whatever its podSpec says.
func HoldBack(spec *v1beta1.AdvDeploymentSpec, podSet string, content *Content, hash string) error {
	for i := range spec.Topology.PodSets {
		if spec.Topology.PodSets[i].Name != podSet {
			continue
		}
		spec.Topology.PodSets[i].Revision = hash
		return store(spec, podSet, content, hash)
	}
	return nil
}

// ChangeFrom has the instances of a podSet keep a content until it is their turn.
func ChangeFrom(spec *v1beta1.AdvDeploymentSpec, podSet string, from *Former) error {
	for i := range spec.Topology.PodSets {
		if spec.Topology.PodSets[i].Name == podSet {
			spec.Topology.PodSets[i].From = from.Hash
			return store(spec, podSet, &from.Content, from.Hash)
		}
	}
	return nil
}

// store a content in a part, once.
func store(spec *v1beta1.AdvDeploymentSpec, podSet string, content *Content, hash string) error {
	for _, known := range spec.Revisions {
		if known.Name == hash {
			return nil
		}
	}
	raw, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("store the content of podSet %s: %w", podSet, err)
	}
	spec.Revisions = append(spec.Revisions, v1beta1.Revision{Name: hash, Content: runtime.RawExtension{Raw: raw}})
	return nil
}
