// Package foresight tells what a change of an AppSet will do in all its clusters, before
// anything is written. It is pure, and composes the planners that will do it: plan/rollout
// says in which stages and past which gates, plan/advdeployment what each podSet becomes, and
// plan/tapp what becomes of its instances.
//
// It goes by the specs: every instance is taken to run what its spec asked for before. In the
// midst of a rollout, podSets that are held back are taken to run the stable content, where
// that is given.
package foresight

import (
	"slices"
	"time"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/effect"
	"tkestack.io/tapp/plan/podset"
	"tkestack.io/tapp/plan/rollout"
)

// Preview of a change.
type Preview struct {
	// Created: there was no such AppSet before.
	Created bool `json:"created,omitempty"`
	// State in which the rollout begins; empty: there is none, since no content changes.
	State rollout.State `json:"state,omitempty"`
	// AtOnce is what no stage holds back: scaling, and what is new in a first installation.
	AtOnce []Change `json:"atOnce,omitempty"`
	// Stages that have work, in their order.
	Stages []Stage `json:"stages,omitempty"`
	// Last is what goes as soon as the others are available: a podSet when those of its cluster
	// are, and a cluster when all are. A rollout may be under way then.
	Last []Change `json:"last,omitempty"`
	// Notes are what else there is to know, in a sentence each.
	Notes []string `json:"notes,omitempty"`
	// Problems are why the spec cannot be carried out: then there is nothing else.
	Problems []podset.Problem `json:"problems,omitempty"`
}

// Stage of a rollout.
type Stage struct {
	Name string `json:"name"`
	// Clusters of the stage that change, and how many of them do so at once.
	Clusters   []string `json:"clusters"`
	Concurrent int      `json:"concurrent"`
	Changes    []Change `json:"changes"`
	// Confirm: the rollout waits for a Confirmation after it. SoakSeconds is how long it has
	// to stay well before the next one.
	Confirm     bool  `json:"confirm,omitempty"`
	SoakSeconds int32 `json:"soakSeconds,omitempty"`
}

// EffectUpgrade is that the release of a chart is upgraded. What becomes of its instances, the
// chart says.
const EffectUpgrade effect.Effect = "Upgrade"

// Change is what becomes of some instances of one podSet in one cluster.
type Change struct {
	Cluster   string        `json:"cluster"`
	PodSet    string        `json:"podSet"`
	Effect    effect.Effect `json:"effect"`
	Instances int           `json:"instances"`
	// IDs of the instances, where they have some.
	IDs string `json:"ids,omitempty"`
	Why string `json:"why"`
}

// Of a change of an AppSet from one spec to another; before is nil for one that is created.
// The status of after tells which clusters are silent.
func Of(before, after *v1beta1.AppSet, now time.Time) Preview { return From(before, after, nil, now) }

// From is Of with the stable content as it is recorded; nil: nothing is known of it.
func From(before, after *v1beta1.AppSet, stable *podset.History, now time.Time) Preview {
	units, _, problems := podset.Units(after)
	if len(problems) > 0 {
		return Preview{Problems: problems}
	}
	f := &foresight{after: after, units: units, is: manifestsOf(after, units), was: map[string]tappManifest{}}
	if before != nil {
		f.old, _, _ = podset.Units(before) // with problems nothing ran
		f.was = manifestsOf(before, f.old)
	}
	f.out.Created = before == nil
	returns := f.returns()
	if before != nil && stable != nil {
		f.recorded(before, stable)
	}
	if before != nil {
		f.findStable(before, stable)
	}
	f.replaces = before != nil && neverRan(before)
	decision := rollout.Compute(f.rolloutInput(before != nil && !f.replaces, returns, now))
	f.stages(&decision)
	f.joining(&decision)
	f.scaling()
	f.removed()
	f.notes(returns)
	return f.out
}

// IsEmpty says whether nothing would change.
func (p *Preview) IsEmpty() bool {
	return len(p.AtOnce)+len(p.Stages)+len(p.Last)+len(p.Problems) == 0
}

// foresight in the making.
type foresight struct {
	after      *v1beta1.AppSet
	units, old []podset.Unit
	// asked is what the spec asked of units before, where the stable content is recorded; nil:
	// it is not. By their keys.
	asked map[string]string
	// stable are the units as they are in the stable content, those that joined too, by their
	// keys.
	stable map[string]*podset.Unit
	// is and was are the TApps that units become and became. Those that joined are in was with
	// the stable content, which they begin with.
	is, was map[string]tappManifest
	// replaces: this takes the place of an installation of which nothing ran.
	replaces bool
	out      Preview
}

// before is a unit as it was; nil: there was none.
func (f *foresight) before(u *podset.Unit) *podset.Unit {
	for i := range f.old {
		if keyOf(&f.old[i]) == keyOf(u) {
			return &f.old[i]
		}
	}
	return nil
}

func keyOf(u *podset.Unit) string {
	return v1beta1.FoldClusterName(u.Cluster) + "/" + u.PodSet.Name
}

// recorded has units that are held back at the stable content be what they are.
func (f *foresight) recorded(before *v1beta1.AppSet, history *podset.History) {
	then, units := history.As(before, f.old)
	manifests := manifestsOf(then, units)
	f.asked = map[string]string{}
	for i := range f.old {
		key := keyOf(&f.old[i])
		f.asked[key] = f.old[i].Hash
		for n := range units {
			if keyOf(&units[n]) == key && units[n].Hash != f.old[i].Hash && askedIn(before, &f.old[i]) == units[n].Hash {
				f.old[i], f.was[key] = units[n], manifests[key]
			}
		}
	}
}

// findStable finds what is stable: what is recorded, or what was asked for before. Clusters that join
// begin with what the others have.
func (f *foresight) findStable(before *v1beta1.AppSet, history *podset.History) {
	if history == nil {
		history = new(podset.HistoryOf(before, f.old))
	}
	then, units := history.As(f.after, f.units)
	f.stable = map[string]*podset.Unit{}
	var joined map[string]tappManifest
	for i := range units {
		key := keyOf(&units[i])
		f.stable[key] = &units[i]
		if f.before(&units[i]) != nil {
			continue
		}
		if joined == nil {
			joined = manifestsOf(then, units)
		}
		f.was[key] = joined[key]
	}
}

// askedIn is the content that the cluster of a unit was asked for, as the status has it.
func askedIn(a *v1beta1.AppSet, u *podset.Unit) string {
	if _, p := seenIn(a, u.Cluster, u.PodSet.Name); p != nil {
		return p.Revision
	}
	return ""
}

// seenIn is what the status has of a podSet, with its cluster; nil: nothing.
func seenIn(a *v1beta1.AppSet, cluster, podSet string) (*v1beta1.ClusterStatus, *v1beta1.PodSetStatus) {
	for i := range a.Status.AggrStatus.Clusters {
		c := &a.Status.AggrStatus.Clusters[i]
		if v1beta1.FoldClusterName(c.Name) != v1beta1.FoldClusterName(cluster) {
			continue
		}
		for p := range c.PodSets {
			if c.PodSets[p].Name == podSet {
				return c, &c.PodSets[p]
			}
		}
	}
	return nil, nil
}

// returns says whether the content asked for is the stable one again.
func (f *foresight) returns() bool {
	r := f.after.Status.Rollout
	return r != nil && r.Stable != "" && r.Stable != podset.Revision(f.old) && r.Stable == podset.Revision(f.units)
}

// neverRan says whether an AppSet is being installed, and nothing of it has ever run: whatever is
// asked for is installed, too.
func neverRan(a *v1beta1.AppSet) bool {
	r := a.Status.Rollout
	return r != nil && r.State == string(rollout.Installing) && !r.Ran && a.Status.AggrStatus.Available == 0 &&
		!slices.ContainsFunc(a.Status.AggrStatus.Clusters, func(c v1beta1.ClusterStatus) bool { return isSilent(&c) })
}

// rolloutInput is what the planner of rollouts is asked: all that was asked for before has
// come about.
func (f *foresight) rolloutInput(hasStable, returns bool, now time.Time) rollout.Input {
	in := rollout.Input{
		UID: string(f.after.UID), Generation: f.after.Generation, Revision: podset.Revision(f.units), Strategy: podset.RolloutStrategy(&f.after.Spec.UpdateStrategy, nil),
		HasStable: hasStable, Now: now,
	}
	in.Strategy.Paused = false // what waits for it is told, too
	for i := range f.after.Spec.ClusterTopology.Clusters {
		c := &f.after.Spec.ClusterTopology.Clusters[i]
		in.Clusters = append(in.Clusters, rollout.Cluster{Name: v1beta1.FoldClusterName(c.Name), Labels: c.Meta, Fresh: true, Ready: true})
	}
	for i := range f.units {
		u := &f.units[i]
		unit := rollout.Unit{Key: rollout.Key{Cluster: v1beta1.FoldClusterName(u.Cluster), Name: u.PodSet.Name}, Group: u.Group, Replicas: u.Replicas, Target: u.Hash}
		if stable := f.stable[keyOf(u)]; stable != nil {
			unit.Stable = stable.Hash
		}
		if was := f.before(u); was != nil {
			unit.Before = was.Hash
			if f.asked != nil {
				unit.Before = f.asked[keyOf(u)]
			}
			if returns {
				unit.Stable = u.Hash
			}
			unit.Sight = rollout.Sight{Has: was.Hash, Observed: true, Desired: u.Replicas, Current: u.Replicas, Updated: u.Replicas, Available: u.Replicas}
		}
		in.Units = append(in.Units, unit)
	}
	return in
}
