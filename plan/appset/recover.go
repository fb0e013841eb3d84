package appset

import (
	"slices"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
	"tkestack.io/tapp/plan/rollout"
)

// recover what is stable from the parts, where another content is asked for and nothing
// says what it was: the record was lost, or the installation was not done yet.
func (p *progression) recover(c *computation, before map[rollout.Key]string) {
	if p.stable != nil || !p.in.HasStable || p.in.Record != nil && p.in.Record.Revision == p.revision {
		return
	}
	if p.in.Record != nil && p.in.Record.Installing && !changes(c.units, before) {
		return // podSets joined, or left, and the installation goes on
	}
	parts, order := map[string]*v1beta1.AdvDeployment{}, []string(nil)
	for _, s := range c.sites {
		if s.listed && s.ours && c.tombstoneOf(s) == nil {
			parts[s.title], order = s.Part, append(order, s.title)
		}
	}
	history := podset.HistoryOfParts(parts, order, p.arrived(c))
	if history == nil {
		return
	}
	then, units := history.As(c.app, c.units)
	p.recovered, p.in.Stable = history, podset.Revision(units)
	if p.in.Record != nil {
		record := *p.in.Record
		record.Stable = p.in.Stable
		p.in.Record = &record
	}
	p.setStable(then, units)
}

// changes says whether another content is asked for of a unit that there was before.
func changes(units []podset.Unit, before map[rollout.Key]string) bool {
	return slices.ContainsFunc(units, func(u podset.Unit) bool {
		was := before[keyOf(u.Cluster, u.PodSet.Name)]
		return was != "" && was != u.Hash
	})
}

// arrived says which units have what is asked for while others do not, where no record is left:
// nothing says that they came to it past their gates, so that it is not stable.
func (p *progression) arrived(c *computation) func(cluster, podSet string) bool {
	arrived, some := map[rollout.Key]bool{}, false
	for _, s := range c.sites {
		for i := range s.units {
			u := &s.units[i]
			key := keyOf(s.Name, u.PodSet.Name)
			has := p.has[key]
			arrived[key] = has != nil && has.Hash == u.Hash
			some = some || has != nil && has.Hash != u.Hash && u.Replicas > 0
		}
	}
	return func(cluster, podSet string) bool {
		return p.in.Record == nil && some && arrived[keyOf(cluster, podSet)]
	}
}
