package foresight

import (
	"cmp"
	"fmt"
	"slices"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/effect"
	"tkestack.io/tapp/plan/podset"
	"tkestack.io/tapp/plan/rollout"
)

// stages as the planner of rollouts has them, with what becomes of their units.
func (f *foresight) stages(d *rollout.Decision) {
	changed := make([][]Change, len(f.units))
	some := false
	for i := range f.units {
		if changed[i] = f.content(&f.units[i], &d.Units[i]); len(changed[i]) > 0 {
			some = true
		}
	}
	if !some {
		return
	}
	f.out.State = d.State
	last := -1
	if d.State == rollout.Staged || d.State == rollout.Waiting {
		for k := range d.Stages {
			if d.Stages[k].Work {
				last = k
			}
		}
	}
	staged := map[int]bool{}
	for k := 0; k <= last; k++ {
		stage := &d.Stages[k]
		out := Stage{Name: stage.Name, Confirm: stage.Confirm && k != last, SoakSeconds: int32(stage.Soak().Seconds())}
		for _, i := range stage.Units {
			if d.Units[i].Stage != k || len(changed[i]) == 0 {
				continue
			}
			staged[i] = true
			out.Changes = append(out.Changes, changed[i]...)
			if name := f.units[i].Cluster; !slices.Contains(out.Clusters, name) {
				out.Clusters = append(out.Clusters, name)
			}
		}
		if len(out.Changes) > 0 {
			out.Concurrent = min(stage.Concurrent(len(out.Clusters)), len(out.Clusters))
			f.out.Stages = append(f.out.Stages, out)
		}
	}
	for i := range changed {
		if !staged[i] {
			f.out.AtOnce = append(f.out.AtOnce, changed[i]...)
		}
	}
}

// removed units go last.
func (f *foresight) removed() {
	for i := range f.old {
		u := &f.old[i]
		if u.Replicas > 0 && !slices.ContainsFunc(f.units, func(other podset.Unit) bool { return keyOf(&other) == keyOf(u) }) {
			f.out.Last = append(f.out.Last, Change{u.Cluster, u.PodSet.Name, effect.ScaleDown, int(u.Replicas), idsOf(u).text(), f.whyRemoved(u)})
		}
	}
}

func (f *foresight) whyRemoved(u *podset.Unit) string {
	if f.lists(u.Cluster) {
		return "the spec has the podSet no more"
	}
	return "the spec has the cluster no more"
}

func (f *foresight) lists(cluster string) bool {
	return slices.ContainsFunc(f.after.Spec.ClusterTopology.Clusters, func(c v1beta1.TargetCluster) bool {
		return v1beta1.FoldClusterName(c.Name) == v1beta1.FoldClusterName(cluster)
	})
}

// whatBecomesOf the rollout that is under way.
func (f *foresight) whatBecomesOf(r *v1beta1.RolloutStatus) string {
	if !f.goesOn() {
		return "ends with this"
	}
	for i := range r.Stages {
		if r.Stages[i].Token != "" {
			return fmt.Sprintf("goes on, and stage %s of it waits for a confirmation", r.Stages[i].Name)
		}
	}
	return "goes on"
}

// goesOn says whether no other content is asked for of any unit that stays: a rollout that is under
// way is not another one then.
func (f *foresight) goesOn() bool {
	return !slices.ContainsFunc(f.units, func(u podset.Unit) bool {
		was := f.before(&u)
		if was == nil {
			return false
		}
		if asked, known := f.asked[keyOf(&u)]; known {
			return asked != u.Hash
		}
		return was.Hash != u.Hash
	})
}

// toldFrom is what a change is told from in the midst of another one.
func (f *foresight) toldFrom() string {
	if f.asked != nil {
		return "podSets that it has not reached are told from the stable content"
	}
	return "the stages are told as if it were done"
}

func (f *foresight) notes(returns bool) {
	note := func(format string, args ...any) { f.out.Notes = append(f.out.Notes, fmt.Sprintf(format, args...)) }
	s, r := &f.after.Spec.UpdateStrategy, f.after.Status.Rollout
	changes := len(f.out.Stages) > 0 || returns
	switch {
	case f.replaces && len(f.out.AtOnce) > 0:
		note("nothing of the installation that is under way has run: this is installed in its place, without stages and gates")
	case returns:
		note("this is the content of the stable revision: all clusters return to it at once, without stages and gates")
	case changes && r != nil && r.Stable != "" && r.Revision != r.Stable:
		note("the rollout that is under way (%s) %s; %s", cmp.Or(r.ID, r.Revision), f.whatBecomesOf(r), f.toldFrom())
	}
	if changes && s.Paused {
		note("spec.updateStrategy.paused is true: updates start when it is false")
	}
	if changes && s.MaxUnavailable != nil {
		note("at most %s of all instances are unavailable at once, in all clusters together", s.MaxUnavailable)
	}
	if early := f.early(); len(early) > 0 {
		note("nothing has run everywhere yet: podSets whose instances were taken out of service and do not come back have this before their stage, as long as they hold the budget: %s", someOf(early))
	}
	if text := f.noRoom(); changes && text != "" {
		note("%s", text)
	}
	if slices.ContainsFunc(s.Stages, func(s v1beta1.Stage) bool { return s.ClusterSelector != nil }) {
		note("stages with a clusterSelector are told by the meta of clusterTopology alone, without that of registrations")
	}
	for i := range f.after.Status.AggrStatus.Clusters {
		if c := &f.after.Status.AggrStatus.Clusters[i]; isSilent(c) && !f.out.IsEmpty() {
			note("nothing current is known of cluster %s (%s): what is to be done there waits for it", c.Name, c.State)
		}
	}
}

// early are the podSets that may change before their stage.
func (f *foresight) early() (out []string) {
	r := f.after.Status.Rollout
	unproven := r != nil && (r.Unproven || r.State == string(rollout.Installing)) && !f.replaces
	if !unproven || f.after.Spec.UpdateStrategy.MaxUnavailable == nil {
		return nil
	}
	for k := range f.out.Stages {
		for _, change := range f.out.Stages[k].Changes {
			name := change.Cluster + "/" + change.PodSet
			if k > 0 && !slices.Contains(out, name) && f.isMissing(&change) {
				out = append(out, name)
			}
		}
	}
	return out
}

// isMissing says whether instances of a podSet are known not to be available.
func (f *foresight) isMissing(change *Change) bool {
	c, p := seenIn(f.after, change.Cluster, change.PodSet)
	return p != nil && !isSilent(c) && p.UnAvailable > 0
}

// isSilent says whether a status tells that nothing current is known of a cluster. One that is
// Suspect is taken to be as it was seen last, until it is Offline.
func isSilent(c *v1beta1.ClusterStatus) bool {
	switch c.State {
	case "", v1beta1.ClusterReady, v1beta1.ClusterSuspect:
		return c.AsOf != nil
	}
	return true
}

// noRoom says that clusters of which nothing current is known leave the budget no room, so that
// no update starts; empty: they do.
func (f *foresight) noRoom() string {
	s := &f.after.Spec.UpdateStrategy
	if s.MaxUnavailable == nil || s.UnreachableCounts == v1beta1.UnreachableAsLastSeen {
		return ""
	}
	silent := map[string]bool{}
	for i := range f.after.Status.AggrStatus.Clusters {
		if c := &f.after.Status.AggrStatus.Clusters[i]; isSilent(c) {
			silent[v1beta1.FoldClusterName(c.Name)] = true
		}
	}
	all, unknown := int32(0), int32(0)
	for i := range f.units {
		all += f.units[i].Replicas
		if silent[v1beta1.FoldClusterName(f.units[i].Cluster)] {
			unknown += f.units[i].Replicas
		}
	}
	strategy := podset.RolloutStrategy(s, nil)
	budget := strategy.Budget(int(all))
	if unknown < budget {
		return ""
	}
	return fmt.Sprintf("no update starts: the %d instances in clusters of which nothing current is known use the budget of %d up, unless spec.updateStrategy.unreachableCounts is AsLastSeen", unknown, budget)
}
