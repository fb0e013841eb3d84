package appset

import (
	"fmt"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
)

// Chart is what a place of charts was resolved to: the digest of the archive that is
// stored, or why there is none.
type Chart struct{ Digest, Err string }

// pin gives all units the chart that was stored for the place that they name. A chart that
// cannot be had is a problem of the spec: all parts stay as they are.
func (c *computation) pin() {
	told := map[string]bool{}
	for i := range c.units {
		u := &c.units[i]
		chart := u.Content.Chart
		if chart == nil || chart.Digest != "" {
			continue
		}
		digest, why := c.resolved(chart)
		switch {
		case digest != "":
			if err := u.Pin(digest); err != nil {
				why = err.Error()
			}
		case c.in.Charts == nil:
			continue // nobody asked; who only looks sees the place
		}
		if why != "" && !told[chart.Place()] {
			told[chart.Place()] = true
			c.problems = append(c.problems, podset.Problem{Field: pathOfChart(u) + ".chartUrl", Why: why})
		}
	}
	if len(c.problems) > 0 {
		c.units = nil
	}
}

// resolved is the digest of a chart, or why there is none. Where nobody asked, it is that
// of a part which has the chart.
func (c *computation) resolved(chart *podset.Chart) (digest, why string) {
	if c.in.Charts != nil {
		known, asked := c.in.Charts[chart.Place()]
		if !asked {
			return "", "it has not been fetched yet"
		}
		return known.Digest, known.Err
	}
	for i := range c.in.Clusters {
		if part := c.in.Clusters[i].Part; part != nil {
			if digest := placedDigest(part, chart); digest != "" {
				return digest, ""
			}
		}
	}
	return "", ""
}

func placedDigest(part *v1beta1.AdvDeployment, chart *podset.Chart) string {
	for i := range part.Spec.Topology.PodSets {
		placed := part.Spec.Topology.PodSets[i].Chart
		if placed == nil || placed.ChartURL == nil || placed.SecretRef == nil {
			continue
		}
		if placed.ChartURL.URL == chart.URL && placed.ChartURL.ChartVersion == chart.Version {
			return podset.DigestIn(placed.SecretRef)
		}
	}
	return ""
}

func pathOfChart(u *podset.Unit) string {
	if u.PodSet.Chart != nil {
		return fmt.Sprintf("spec.clusterTopology.clusters[%s].podSets[%s].chart", u.Cluster, u.PodSet.Name)
	}
	return "spec.podSpec.chart"
}

// Charts that an AppSet names, each once: archives that it has itself by their digests,
// and the places of others.
func Charts(a *v1beta1.AppSet) (raw map[string][]byte, places []podset.Chart) {
	if deployType, _ := v1beta1.DeployTypeOf(&a.Spec.PodSpec); deployType != v1beta1.DeployHelm {
		return nil, nil
	}
	raw = map[string][]byte{}
	seen := map[podset.Chart]bool{}
	add := func(c *v1beta1.ChartSpec) {
		switch {
		case c == nil:
		case len(c.RawChart) > 0:
			raw[podset.DigestOf(c.RawChart)] = c.RawChart
		case c.ChartURL != nil:
			place := podset.Chart{URL: c.ChartURL.URL, Version: c.ChartURL.ChartVersion}
			if !seen[place] {
				seen[place] = true
				places = append(places, place)
			}
		}
	}
	add(a.Spec.PodSpec.Chart)
	for i := range a.Spec.ClusterTopology.Clusters {
		for n := range a.Spec.ClusterTopology.Clusters[i].PodSets {
			add(a.Spec.ClusterTopology.Clusters[i].PodSets[n].Chart)
		}
	}
	return raw, places
}

// Digests of the charts whose archives a part needs.
func Digests(part *v1beta1.AdvDeployment) (out []string) {
	for i := range part.Spec.Topology.PodSets {
		if chart := part.Spec.Topology.PodSets[i].Chart; chart != nil && chart.SecretRef != nil {
			out = append(out, podset.DigestIn(chart.SecretRef))
		}
	}
	for i := range part.Spec.Revisions {
		if digest := podset.ChartOf(&part.Spec.Revisions[i]); digest != "" {
			out = append(out, digest)
		}
	}
	return out
}
