package appset

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
	"tkestack.io/tapp/plan/rollout"
)

// progression is how the contents of an AppSet get to its clusters.
type progression struct {
	in       rollout.Input
	decision rollout.Decision
	ledger   podset.Ledger
	revision string // of all units as asked for
	// then is the AppSet with its stable contents, and its units by key; nil: nothing is
	// known to be stable.
	then   *v1beta1.AppSet
	stable map[rollout.Key]*podset.Unit
	// has are the units that the parts have now, by key.
	has map[rollout.Key]*podset.Unit
	// recovered is what is taken for stable since no record says what is; nil: nothing is.
	recovered *podset.History
	// at is the index of a unit in the input.
	at map[rollout.Key]int
}

func keyOf(cluster, podSet string) rollout.Key {
	return rollout.Key{Cluster: v1beta1.FoldClusterName(cluster), Name: podSet}
}

// roll decides which content each unit has now, and makes the parts of that.
func (c *computation) roll() {
	c.rolling = newProgression(c)
	c.rolling.decision = rollout.Compute(c.rolling.in)
	c.follow(&c.rolling.decision)
	switch d := &c.rolling.decision; {
	case d.State == rollout.Halted:
		c.stall(ReasonHalted, "the rollout %s halted: %s. Set the spec back to return, or annotate the AppSet with %s=%s to try again", d.Record.ID, d.Why, v1beta1.AnnotationRetry, d.Record.ID)
	case d.State == rollout.RolledBack:
		c.stall(ReasonRolledBack, "the rollout %s failed, and all run what they ran before: %s. Set the spec back, or annotate the AppSet with %s=%s to try again", d.Record.ID, d.Record.Halted, v1beta1.AnnotationRetry, d.Record.ID)
	case d.Why != "":
		c.wait("%s", d.Why)
	case d.State != rollout.Done && c.app.Spec.UpdateStrategy.Paused:
		c.wait("rollout %s does not go on: spec.updateStrategy.paused is true", d.Record.ID)
	case d.State != rollout.Done:
		c.wait("rollout %s goes on", d.Record.ID)
	}
}

func newProgression(c *computation) *progression {
	p := &progression{revision: podset.Revision(c.units), has: map[rollout.Key]*podset.Unit{}, at: map[rollout.Key]int{}}
	p.in = rollout.Input{
		UID: string(c.app.UID), Generation: c.app.Generation, Revision: p.revision,
		Strategy: podset.RolloutStrategy(&c.app.Spec.UpdateStrategy, deadlineOf(c.app)),
		Retry:    c.app.Annotations[v1beta1.AnnotationRetry], Now: c.in.Now, Ran: podset.Ran(c.app.Status.Rollout),
	}
	p.read(c)
	for _, conf := range c.in.Confirmations {
		if conf.Spec.AppSet == c.app.Name {
			p.in.Confirmations = append(p.in.Confirmations, rollout.Confirmation{Rollout: conf.Spec.Rollout, Stage: conf.Spec.Stage, Token: conf.Spec.Token, By: conf.Spec.ConfirmedBy})
		}
	}
	for _, s := range c.sites {
		if s.ours && c.tombstoneOf(s) == nil { // what goes first is nothing that others return to
			units, _, _ := podset.Placed(s.Part)
			for i := range units {
				p.has[keyOf(s.Name, units[i].PodSet.Name)] = &units[i]
			}
			p.in.HasStable = true
		}
		if s.listed {
			p.in.Clusters = append(p.in.Clusters, rollout.Cluster{Name: s.Name, Labels: labelsOf(c.app, s), Fresh: s.certain(),
				Ready: s.certain() && s.State == v1beta1.ClusterReady, Maintaining: s.State == v1beta1.ClusterMaintaining})
		}
	}
	before := p.before(c)
	p.recover(c, before)
	for _, s := range c.sites {
		for i := range s.units {
			u := p.unit(c, s, &s.units[i])
			if u.Before = before[u.Key]; before == nil {
				u.Before = u.Target
			}
			p.at[u.Key] = len(p.in.Units)
			p.in.Units = append(p.in.Units, u)
		}
	}
	for _, s := range c.sites {
		p.leave(s)
	}
	return p
}

func deadlineOf(a *v1beta1.AppSet) *int32 {
	if a.Spec.ProgressDeadlineSeconds != nil {
		return a.Spec.ProgressDeadlineSeconds
	}
	return new(v1beta1.DefaultProgressDeadlineSeconds)
}

// labelsOf a cluster, that stages select by: its registration's, below the topology's.
func labelsOf(a *v1beta1.AppSet, s *site) labels.Set {
	out := labels.Set{}
	for key, value := range s.Labels {
		out[key] = value
	}
	for i := range a.Spec.ClusterTopology.Clusters {
		if cluster := &a.Spec.ClusterTopology.Clusters[i]; cluster.Name == s.title {
			for key, value := range cluster.Meta {
				out[key] = value
			}
		}
	}
	return out
}

// read the record, and what is stable.
func (p *progression) read(c *computation) {
	p.ledger = podset.LedgerOf(c.app, c.in.Revisions)
	p.in.Record = p.ledger.Record()
	if p.in.Record == nil {
		return
	}
	stable := p.in.Record.Stable
	if stable == "" && p.in.Record.Revision != p.revision && slices.ContainsFunc(c.sites, (*site).isUnseen) {
		// Another content is asked for in the midst of the installation, and a cluster that
		// is not seen may have the one before.
		stable, p.in.Stable = p.in.Record.Revision, p.in.Record.Revision
	}
	switch history := p.ledger.History(stable); {
	case history == nil:
	case stable == p.revision: // and so are all contents
		p.setStable(c.app, c.units)
	default:
		p.setStable(history.As(c.app, c.units))
	}
}

// setStable notes what each unit returns to.
func (p *progression) setStable(then *v1beta1.AppSet, units []podset.Unit) {
	p.then, p.stable, p.in.HasStable = then, map[rollout.Key]*podset.Unit{}, true
	for i := range units {
		if wasHad(&units[i]) {
			p.stable[keyOf(units[i].Cluster, units[i].PodSet.Name)] = &units[i]
		}
	}
}

// wasHad says whether a recorded content was one: that of a unit whose chart could not be had
// was asked for, and nobody's.
func wasHad(u *podset.Unit) bool { return u.Content.Chart == nil || u.Content.Chart.Digest != "" }

// before is what was asked for when the record was written, by unit; nil: the same as now.
func (p *progression) before(c *computation) map[rollout.Key]string {
	if p.in.Record == nil || p.in.Record.Revision == p.revision {
		return nil
	}
	out := map[rollout.Key]string{}
	history := p.ledger.History(p.in.Record.Revision)
	if history == nil {
		return out
	}
	_, units := history.As(c.app, c.units)
	for i := range units {
		if was := clusterOf(history, units[i].Cluster); was && wasHad(&units[i]) {
			out[keyOf(units[i].Cluster, units[i].PodSet.Name)] = units[i].Hash
		}
	}
	return out
}

func clusterOf(h *podset.History, name string) bool {
	return slices.ContainsFunc(h.ClusterTopology.Clusters, func(t v1beta1.TargetCluster) bool {
		return v1beta1.FoldClusterName(t.Name) == v1beta1.FoldClusterName(name)
	})
}

// unit as the planner of rollouts sees it.
func (p *progression) unit(c *computation, s *site, u *podset.Unit) rollout.Unit {
	out := rollout.Unit{Key: keyOf(s.Name, u.PodSet.Name), Group: u.Group, Replicas: u.Replicas, Target: u.Hash}
	has := p.has[out.Key]
	out.Unseen = has == nil && (s.remembered && s.isUnseen() || p.isLeftOver(s, out.Key))
	switch {
	case p.stable != nil:
		if stable := p.stable[out.Key]; stable != nil {
			out.Stable = stable.Hash
		}
	case has != nil: // nothing is recorded: what runs is stable
		out.Stable = has.Hash
	default:
		out.Stable = u.Hash
	}
	if has != nil {
		out.Has, out.Version = has.Hash, s.Part.ResourceVersion
		p.see(s, &out)
		noteProgress(&c.app.Status, s.title, &out)
	}
	return out
}

// see what the part says of a unit that it has.
func (p *progression) see(s *site, out *rollout.Unit) {
	if placed := s.placed(out.Name); placed != nil {
		out.Grant, out.Ceiling = placed.MaxUnavailable, placed.Ceiling
	}
	out.Desired, out.Current = out.Replicas, out.Replicas
	if stalled := s.stalled(); stalled != nil && podset.IsFault(stalled.Reason) && s.isObserved() {
		out.Stalled = stalled.Message
	}
	seen := s.podSet(out.Name)
	if seen == nil {
		return
	}
	out.Desired, out.Available = seen.Desired, seen.Available
	if seen.Update != nil && seen.Current != nil {
		out.Updated, out.Current = *seen.Update, *seen.Current
	}
	followed := seen.Observed || p.in.Strategy.MaxUnavailable == nil && seen.Update != nil // workers of older versions
	if s.isObserved() && seen.Revision == out.Has && podset.IsBroken(seen) {
		out.Stalled, out.Broken = cmp.Or(out.Stalled, seen.Message), true
	}
	out.Observed = s.isObserved() && followed && seen.Revision == out.Has
	if seen.Revision != out.Has {
		out.Updated = 0
	}
}

// noteProgress of a unit, as the stored status has it.
func noteProgress(status *v1beta1.AppSetStatus, cluster string, out *rollout.Unit) {
	stored := storedPodSet(status, cluster, out.Name)
	if stored == nil || stored.ProgressedAt == nil {
		return
	}
	out.Progress.At, out.Progress.Available = stored.ProgressedAt.Time, stored.Available
	if stored.Update != nil && stored.Revision == out.Has {
		out.Progress.Updated = *stored.Update
	}
}

func storedPodSet(s *v1beta1.AppSetStatus, cluster, name string) *v1beta1.PodSetStatus {
	for i := range s.AggrStatus.Clusters {
		if s.AggrStatus.Clusters[i].Name != cluster {
			continue
		}
		for n := range s.AggrStatus.Clusters[i].PodSets {
			if p := &s.AggrStatus.Clusters[i].PodSets[n]; p.Name == name {
				return p
			}
		}
	}
	return nil
}

// verdict on a unit; nil: no rollout is decided about.
func (c *computation) verdict(cluster, podSet string) *rollout.Verdict {
	if c.rolling == nil {
		return nil
	}
	at, known := c.rolling.at[keyOf(cluster, podSet)]
	if !known || at >= len(c.rolling.decision.Units) {
		return nil
	}
	return &c.rolling.decision.Units[at]
}

// follow a decision: the parts, and the record before them.
func (c *computation) follow(d *rollout.Decision) {
	shared, held := podset.SharedIDs(c.units), holders{}
	for _, s := range c.sites {
		if s.spec != nil {
			c.assignContents(s)
			c.handOver(s, shared, held)
		}
	}
	if d.Store {
		c.store(d)
	}
	c.prune(d)
}

// assignContents makes the part of a cluster: each unit has the content that is decided. A unit that is
// not to exist yet is left out.
func (c *computation) assignContents(s *site) {
	p := c.rolling
	all, stable := true, p.then != nil
	var units []podset.Unit
	for i := range s.units {
		u := s.units[i]
		v := c.verdict(s.Name, u.PodSet.Name)
		if v == nil || v.Content == "" {
			all = false
			stable = false
			continue
		}
		then := p.stable[keyOf(s.Name, u.PodSet.Name)]
		all = all && v.Content == u.Hash
		stable = stable && then != nil && v.Content == then.Hash
		units = append(units, u)
	}
	s.held = len(units) == 0 && !s.ours
	switch {
	case stable && !all:
		units = nil
		for i := range s.units {
			units = append(units, *p.stable[keyOf(s.Name, s.units[i].PodSet.Name)])
		}
		spec := podset.Part(p.then, units)
		s.spec = &spec
	default:
		spec := podset.Part(c.app, units)
		s.spec = &spec
		for i := range units {
			c.holdBack(s, &units[i])
		}
	}
	for i := range units {
		if u := &units[i]; u.Retained {
			_ = podset.HoldBack(s.spec, u.PodSet.Name, &u.Content, u.Hash) // it came from JSON
		}
	}
	s.revision = podset.Revision(units)
	for i := range s.spec.Topology.PodSets {
		placed := &s.spec.Topology.PodSets[i]
		v := c.verdict(s.Name, placed.Name)
		placed.MaxUnavailable, placed.Ceiling = v.Grant, v.Ceiling
		if from := c.from(s, placed.Name, v); from != nil {
			_ = podset.ChangeFrom(s.spec, placed.Name, from) // it came from JSON
		}
	}
	if len(units) < len(s.units) {
		c.stay(s)
	}
}

// stay keeps the podSets in a part that the spec has no more, as they are, while a new one waits
// for its turn: it may be what replaces them, and a cluster would be empty meanwhile.
func (c *computation) stay(s *site) {
	if !s.ours {
		return
	}
	for i := range s.Part.Spec.Topology.PodSets {
		placed := s.Part.Spec.Topology.PodSets[i].DeepCopy()
		key := keyOf(s.Name, placed.Name)
		has := c.rolling.has[key]
		if _, asked := c.rolling.at[key]; asked || has == nil {
			continue
		}
		placed.Revision, placed.From = "", ""
		s.spec.Topology.PodSets = append(s.spec.Topology.PodSets, *placed)
		_ = podset.HoldBack(s.spec, placed.Name, &has.Content, has.Hash) // it came from JSON
		if has.From != nil {
			_ = podset.ChangeFrom(s.spec, placed.Name, has.From)
		}
	}
}

// from is the content that instances of a podSet keep until it is their turn to change: the
// stable one, if they had that when the change began. Nil: all may change.
func (c *computation) from(s *site, podSet string, v *rollout.Verdict) *podset.Former {
	key, d := keyOf(s.Name, podSet), &c.rolling.decision
	has, stable := c.rolling.has[key], c.rolling.stable[key]
	switch {
	case has == nil || has.Content.DeployType != v1beta1.DeployInPlaceSet:
		return nil
	case has.From != nil:
		if has.From.Hash == v.Content || v.Done && (d.State == rollout.Done || d.State == rollout.RolledBack) {
			return nil
		}
		return has.From
	case has.Hash == v.Content || stable == nil || has.Hash != stable.Hash: // somebody else may have edited it
		return nil
	}
	return &podset.Former{Content: has.Content, Hash: has.Hash}
}

// holdBack a unit that is not to have what is asked for.
func (c *computation) holdBack(s *site, u *podset.Unit) {
	key := keyOf(s.Name, u.PodSet.Name)
	v := c.verdict(s.Name, u.PodSet.Name)
	if v.Content == u.Hash {
		return
	}
	for _, known := range []*podset.Unit{c.rolling.stable[key], c.rolling.has[key]} {
		if known != nil && known.Hash == v.Content {
			if err := podset.HoldBack(s.spec, u.PodSet.Name, &known.Content, known.Hash); err == nil {
				u.Content, u.Hash = known.Content, known.Hash
			}
			return
		}
	}
}
