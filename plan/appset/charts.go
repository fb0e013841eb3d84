package appset

import (
	"fmt"
	"slices"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
	"tkestack.io/tapp/plan/rollout"
)

// Chart is the result of fetching a chart: the digest of the stored archive, or why there
// is none.
type Chart struct{ Digest, Err string }

// pin sets the digest of the stored chart in all units that name a chart. Units whose chart
// could not be fetched are noted in unfetched; retain decides about them.
func (c *computation) pin() {
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
			continue // nothing was fetched, as in a preview: the unit keeps the name of its chart
		}
		if why == "" {
			continue
		}
		if c.unfetched == nil {
			c.unfetched = map[rollout.Key]string{}
		}
		c.unfetched[keyOf(u.Cluster, u.PodSet.Name)] = why
		if told := (stall{ReasonChart, pathOfChart(u) + ".chartUrl: " + why}); !slices.Contains(c.stalls, told) {
			c.stalls = append(c.stalls, told)
		}
	}
}

// retain gives units whose chart could not be fetched the content of their part, or else
// the stable content of the record. A unit that has neither is not created.
func (c *computation) retain() {
	if len(c.unfetched) == 0 {
		return
	}
	recorded := &progression{}
	recorded.read(c)
	kept := map[rollout.Key]*podset.Unit{}
	for _, s := range c.sites {
		if s.ours {
			units, _, _ := podset.Placed(s.Part)
			for i := range units {
				kept[keyOf(s.Name, units[i].PodSet.Name)] = &units[i]
			}
		}
	}
	judge := func(u *podset.Unit) (gone bool) {
		key := keyOf(u.Cluster, u.PodSet.Name)
		if _, is := c.unfetched[key]; !is {
			return false
		}
		known := kept[key]
		if known == nil {
			known = recorded.stable[key]
		}
		if known == nil || known.Content.Chart == nil || known.Content.Chart.Digest == "" {
			return true
		}
		u.Retain(known)
		return false
	}
	var units []podset.Unit
	for i := range c.units {
		if u := c.units[i]; !judge(&u) {
			units = append(units, u)
		}
	}
	c.units = units
	for _, s := range c.sites {
		c.retainIn(s, judge)
	}
}

// retainIn does so in one cluster. If the part would lose podSets meanwhile, the missing
// unit may be what replaces them. Then the spec has a problem, and all parts stay as they
// are until the chart is fetched.
func (c *computation) retainIn(s *site, judge func(*podset.Unit) bool) {
	var units []podset.Unit
	for i := range s.units {
		if u := s.units[i]; judge(&u) {
			s.missing = append(s.missing, u)
		} else {
			units = append(units, u)
		}
	}
	if len(s.missing) > 0 && s.ours {
		for i := range s.Part.Spec.Topology.PodSets {
			name := s.Part.Spec.Topology.PodSets[i].Name
			if !slices.ContainsFunc(s.units, func(u podset.Unit) bool { return u.PodSet.Name == name }) {
				c.problems = append(c.problems, podset.Problem{Field: pathOfChart(&s.missing[0]) + ".chartUrl", Why: fmt.Sprintf(
					"until the chart is there cluster %s keeps podSet %s, which the spec does not have any more, and nothing else changes", s.title, name)})
				break
			}
		}
	}
	s.units = units
}

// resolved is the digest of a chart, or why there is none. If nothing was fetched, as in a
// preview, it is the digest in a part that names the same chart.
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
