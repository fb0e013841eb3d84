package podset

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// Placed are the units of an AdvDeployment, in the order of its topology. They have the
// content that the AppSet's units have, if it is the part of one. With problems there are
// none.
func Placed(d *v1beta1.AdvDeployment) ([]Unit, []Note, []Problem) {
	a := AsAppSet(d)
	path := func(_, podSet string) string { return fmt.Sprintf("spec.topology.podSets[%s]", podSet) }
	units, notes, problems := unitsOf(a, path, problemsOfStrategy(&a.Spec.UpdateStrategy, a.Spec.ClusterTopology.Clusters))
	if len(problems) > 0 {
		return nil, notes, problems
	}
	for i := range units {
		if chart := d.Spec.Topology.PodSets[i].Chart; chart != nil && chart.SecretRef != nil {
			if why := units[i].pinTo(chart.SecretRef); why != "" {
				problems = append(problems, Problem{path("", units[i].PodSet.Name) + ".chart.secretRef", why})
			}
		}
		if name := d.Spec.Topology.PodSets[i].Revision; name != "" {
			if why := units[i].holdBack(d.Spec.Revisions, name); why != "" {
				problems = append(problems, Problem{path("", units[i].PodSet.Name) + ".revision", why})
			}
		}
		if name := d.Spec.Topology.PodSets[i].From; name != "" {
			former := units[i]
			if why := former.holdBack(d.Spec.Revisions, name); why != "" {
				problems = append(problems, Problem{path("", units[i].PodSet.Name) + ".from", why})
			}
			units[i].From = &Former{former.Content, former.Hash}
		}
	}
	if len(problems) > 0 {
		return nil, notes, problems
	}
	return units, notes, nil
}

// AsAppSet is an AppSet that asks for the same in one cluster, which has no name.
func AsAppSet(d *v1beta1.AdvDeployment) *v1beta1.AppSet {
	a := &v1beta1.AppSet{ObjectMeta: d.ObjectMeta}
	a.Spec = v1beta1.AppSetSpec{
		Labels: d.Spec.Labels, Replicas: d.Spec.Replicas, ServiceName: d.Spec.ServiceName, PodSpec: d.Spec.PodSpec, UpdateStrategy: d.Spec.UpdateStrategy,
	}
	cluster := v1beta1.TargetCluster{}
	for i := range d.Spec.Topology.PodSets {
		placed := &d.Spec.Topology.PodSets[i]
		p := v1beta1.PodSet{PodSetSpec: placed.PodSetSpec}
		if placed.Chart != nil {
			p.Chart = &v1beta1.ChartSpec{RawChart: placed.Chart.RawChart, ChartURL: placed.Chart.ChartURL}
		}
		cluster.PodSets = append(cluster.PodSets, p)
	}
	a.Spec.ClusterTopology.Clusters = []v1beta1.TargetCluster{cluster}
	return a
}

// pinTo gives a unit the chart in a Secret. Why it cannot; empty: it could.
func (u *Unit) pinTo(ref *corev1.LocalObjectReference) string {
	if u.Content.DeployType != v1beta1.DeployHelm {
		return ""
	}
	digest := DigestIn(ref)
	if digest == "" {
		return fmt.Sprintf("%q is no name of a chart's Secret: that is %s, and the SHA-256 of its archive", ref.Name, v1beta1.ChartSecretPrefix)
	}
	if err := u.Pin(digest); err != nil {
		return err.Error()
	}
	return ""
}

// holdBack gives a unit the content of a revision. Why it cannot; empty: it could.
func (u *Unit) holdBack(revisions []v1beta1.Revision, name string) string {
	for i := range revisions {
		if revisions[i].Name != name {
			continue
		}
		content := Content{}
		if err := json.Unmarshal(revisions[i].Content.Raw, &content); err != nil {
			return fmt.Sprintf("the content of revision %s cannot be read: %v", name, err)
		}
		hash, err := content.hash()
		if err != nil {
			return err.Error()
		}
		u.Content, u.Hash, u.Version = content, hash, content.versionOr(u.Version)
		return ""
	}
	return fmt.Sprintf("spec.revisions has no revision %s", name)
}

// versionOr is the version that the content has, for people.
func (c *Content) versionOr(otherwise string) string {
	switch {
	case c.Version != "":
		return c.Version
	case c.Labels[v1beta1.LabelVersion] != "":
		return c.Labels[v1beta1.LabelVersion]
	case c.Template != nil:
		if main := MainContainer(c.Template, c.Labels[v1beta1.LabelApp]); main >= 0 {
			return VersionOf(c.Template.Spec.Containers[main].Image)
		}
	}
	return otherwise
}
