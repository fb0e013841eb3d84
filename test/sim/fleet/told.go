package fleet

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/foresight"
	"tkestack.io/tapp/plan/podset"
	"tkestack.io/tapp/plan/rollout"
	"tkestack.io/tapp/test/sim/apiserver"
)

// asTold judges the order in which parts are given what is asked for.
func (w *world) asTold(c *cluster, change *apiserver.Change) error {
	before, _ := change.Before.(*v1beta1.AdvDeployment)
	after, ok := change.After.(*v1beta1.AdvDeployment)
	if !ok || w.foreseen[apiserver.Key(after)] == nil {
		return nil
	}
	f := w.foreseen[apiserver.Key(after)]
	had := map[string]string{}
	if before != nil {
		for _, u := range w.placed(c, before) {
			had[u.PodSet.Name] = u.Hash
		}
	}
	for _, u := range w.placed(c, after) {
		at := place{c.name, u.PodSet.Name}
		k, staged := f.stage[at]
		if u.Hash != f.target[at] || had[u.PodSet.Name] == u.Hash || !staged {
			continue
		}
		w.coverage["told in order"]++
		for earlier := range k {
			if err := w.comesAfter(after, f, at, earlier); err != nil {
				return err
			}
		}
		if err := w.takesItsTurn(after, f, at, k); err != nil {
			return err
		}
	}
	return nil
}

// comesAfter judges whether a podSet changes after a stage, its gate and its soak.
func (w *world) comesAfter(a object, f *foreseen, at place, k int) error {
	stage := &f.preview.Stages[k]
	name := at.cluster + "/" + at.podSet
	if left := w.unfinished(a, f, k); left != "" {
		return fmt.Errorf("preview: %s changes in stage %s, and %s of stage %s is not done when it does", name, f.preview.Stages[f.stage[at]].Name, left, stage.Name)
	}
	if stage.Confirm && !slices.Contains(f.gates, stage.Name) {
		return fmt.Errorf("preview: stage %s waits for a confirmation, and %s changes before it has waited", stage.Name, name)
	}
	if soaked := w.now().Sub(f.well[k]); soaked < time.Duration(stage.SoakSeconds)*time.Second-time.Second { // records count whole seconds
		return fmt.Errorf("preview: stage %s has to stay well for %d s, and %s changes %s after it is done", stage.Name, stage.SoakSeconds, name, soaked)
	}
	return nil
}

// takesItsTurn judges whether a cluster changes in the order of its stage, and no more of
// them at once than was told.
func (w *world) takesItsTurn(a object, f *foreseen, at place, k int) error {
	stage := &f.preview.Stages[k]
	var before []string
	for _, cluster := range stage.Clusters[:slices.Index(stage.Clusters, at.cluster)] {
		if slices.ContainsFunc(stage.Changes, func(ch foresight.Change) bool {
			return ch.Cluster == cluster && !w.isDone(a, f, place{ch.Cluster, ch.PodSet})
		}) {
			before = append(before, cluster)
		}
	}
	if len(before) >= stage.Concurrent {
		return fmt.Errorf("preview: %s, and %s begins while %s is not done", stage.Head(), at.cluster, strings.Join(before, ", "))
	}
	return nil
}

// unfinished is a podSet that is told to change in a stage, and is not done; empty: all are.
func (w *world) unfinished(a object, f *foreseen, k int) string {
	for _, c := range f.preview.Stages[k].Changes {
		if !w.isDone(a, f, place{c.Cluster, c.PodSet}) {
			return c.Cluster + "/" + c.PodSet
		}
	}
	return ""
}

// noteWell remembers since when the stages are done, by the first of their clusters' workers
// that tells of it.
func (w *world) noteWell(part object) {
	f := w.foreseen[apiserver.Key(part)]
	if f == nil {
		return
	}
	for k := range f.preview.Stages {
		if f.well[k].IsZero() && w.unfinished(part, f, k) == "" {
			f.well[k] = w.now()
		}
	}
}

// gateTold judges the gates that a status tells of.
func (w *world) gateTold(a *v1beta1.AppSet) error {
	f := w.foreseen[apiserver.Key(a)]
	if f == nil || a.Status.ObservedGeneration != a.Generation {
		return nil
	}
	r := a.Status.Rollout
	if r == nil {
		return nil
	}
	switch rollout.State(r.State) {
	case rollout.Halted, rollout.RollingBack, rollout.RolledBack, rollout.Unknown:
		return fmt.Errorf("preview: nothing goes wrong, and the rollout is %s: %s", r.State, r.Message)
	}
	stage := waiting(a)
	if stage == nil || slices.Contains(f.gates, stage.Name) {
		return nil
	}
	f.gates = append(f.gates, stage.Name)
	if want := f.waits(); len(f.gates) > len(want) || want[len(f.gates)-1] != stage.Name {
		return fmt.Errorf("preview: the rollout waits for confirmations after the stages %q, and it waits after %s", want, stage.Name)
	}
	for _, ch := range f.preview.AtOnce {
		if !w.isAsked(a, f, place{ch.Cluster, ch.PodSet}) {
			return fmt.Errorf("preview: at once %s in %s/%s, and stage %s is done before that is asked for", foresight.Words(ch.Effect, ch.Instances), ch.Cluster, ch.PodSet, stage.Name)
		}
	}
	return nil
}

// isAsked says whether a cluster is asked for a podSet as no stage holds it back. How long
// instances take to come up is theirs.
func (w *world) isAsked(a object, f *foreseen, at place) bool {
	c, part := w.partOf(a, at.cluster)
	if part == nil {
		return false
	}
	_, staged := f.stage[at]
	return slices.ContainsFunc(w.placed(c, part), func(u podset.Unit) bool {
		return u.PodSet.Name == at.podSet && u.Replicas == f.replicas[at] && (staged || u.Hash == f.target[at])
	})
}

// waits are the stages after which the rollout was told to wait.
func (f *foreseen) waits() (out []string) {
	for i := range f.preview.Stages {
		if f.preview.Stages[i].Confirm {
			out = append(out, f.preview.Stages[i].Name)
		}
	}
	return out
}
