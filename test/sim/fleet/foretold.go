package fleet

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/effect"
	"tkestack.io/tapp/plan/foresight"
	"tkestack.io/tapp/plan/podset"
	"tkestack.io/tapp/plan/rollout"
	"tkestack.io/tapp/test/sim/apiserver"
)

// drawForetold makes a plan in which nothing goes wrong, and one edit comes after the other.
// What a user is told of an edit has to be what then happens.
func drawForetold(seed int64, rng *rand.Rand) Plan {
	p := Plan{Seed: seed, Horizon: 20, Members: 2 + rng.IntN(4), Foretold: true, Grouped: seed%64 == 52}
	app := appKeys()[0]
	p.Edits = append(p.Edits, Edit{Step: rng.IntN(10), App: app, Kind: "create"})
	for range 2 + rng.IntN(4) {
		kind := []string{"image", "env", "labels", "undo"}[rng.IntN(4)]
		others := []string{"stages", "scale", "add cluster", "drop cluster", "add podSet", "drop podSet", "budget"}
		switch other := others[rng.IntN(len(others))]; rng.IntN(3) {
		case 0:
			kind = other
		case 1:
			kind = other + ", " + kind
		}
		p.Edits = append(p.Edits, Edit{Step: rng.IntN(60), App: app, Kind: kind, A: rng.IntN(60), B: rng.IntN(60)})
	}
	p.sort()
	return p
}

// isDue says whether it is time for an edit: all that was asked for before has come about.
func (w *world) isDue(i int) bool {
	if i != w.due || w.plan.Edits[i].Step > w.steps || !w.hasComeAbout() {
		return false
	}
	w.due++
	return true
}

// expects says whether edits are still to be made, or to come about.
func (w *world) expects() bool {
	if w.steps > mostSteps {
		w.fail(fmt.Errorf("L2: no rest after %d steps in which nothing went wrong", w.steps))
	}
	return w.plan.Foretold && (w.due < len(w.plan.Edits) || !w.hasComeAbout())
}

// hasComeAbout says whether all AppSets and their parts are where their specs say.
func (w *world) hasComeAbout() bool {
	for _, a := range apiserver.All[*v1beta1.AppSet](w.hub.Store, appSets) {
		if r := a.Status.Rollout; r == nil || r.State != string(rollout.Done) || a.Status.ObservedGeneration != a.Generation {
			return false
		}
	}
	if w.atRest() != nil {
		return false
	}
	for _, key := range apiserver.SortedKeys(w.foreseen) {
		f := w.foreseen[key]
		delete(w.foreseen, key)
		w.coverage["told judged"]++
		if err := f.cameAbout(); err != nil {
			w.fail(err)
		}
	}
	return true
}

// foreseen is what the preview of an edit told, and what of it has come about.
type foreseen struct {
	preview foresight.Preview
	// target are the contents of the podSets that are asked for, replicas how many instances of
	// them, and stage the stages in which they are told to change; those that change at once
	// have none.
	target   map[place]string
	replicas map[place]int32
	stage    map[place]int
	// listed are the clusters of the spec.
	listed map[string]bool
	// happened counts what became of instances.
	happened map[fate]int
	// gates that waited, in their order; well is since when all of a stage is done.
	gates []string
	well  []time.Time
}

// place is a podSet in a cluster.
type place struct{ cluster, podSet string }

// fate is what becomes of instances of a podSet.
type fate struct {
	place
	effect effect.Effect
}

// foresee has a user look at the preview of an edit, as `kubectl tapp fleet plan` tells it.
func (w *world) foresee(before, after *v1beta1.AppSet) {
	if !w.plan.Foretold {
		return
	}
	after = after.DeepCopy()
	if before == nil || !equality.Semantic.DeepEqual(before.Spec, after.Spec) {
		after.Generation++
	}
	var revisions []appsv1.ControllerRevision
	for _, r := range apiserver.All[*appsv1.ControllerRevision](w.hub.Store, apiserver.Revisions) {
		revisions = append(revisions, *r)
	}
	stable, err := podset.StableOf(before, revisions)
	if err != nil {
		w.fail(fmt.Errorf("preview: %w", err))
		return
	}
	f := &foreseen{preview: foresight.From(before, after, stable, w.now()), target: map[place]string{}, replicas: map[place]int32{}, stage: map[place]int{}, listed: map[string]bool{}, happened: map[fate]int{}}
	units, _, _ := podset.Units(after)
	for i := range units {
		f.listed[units[i].Cluster] = true
		at := place{units[i].Cluster, units[i].PodSet.Name}
		f.target[at], f.replicas[at] = units[i].Hash, units[i].Replicas
	}
	for k := range f.preview.Stages {
		for _, c := range f.preview.Stages[k].Changes {
			f.stage[place{c.Cluster, c.PodSet}] = k
		}
	}
	f.well = make([]time.Time, len(f.preview.Stages))
	w.foreseen[apiserver.Key(after)] = f
	for _, line := range f.preview.Lines() {
		w.say("     told: %s", line)
	}
}

// happens is told what becomes of instances of a podSet.
func (w *world) happens(c *cluster, part object, s *set, effect effect.Effect, n int) {
	f := w.foreseen[apiserver.Key(part)]
	if f == nil || n == 0 {
		return
	}
	at := place{c.name, s.name}
	f.happened[fate{at, effect}] += n
	w.say("     %s/%s: %s", c.name, s.name, effect.Words(n))
	if !slices.ContainsFunc(f.preview.Last, func(ch foresight.Change) bool { return place{ch.Cluster, ch.PodSet} == at }) {
		return
	}
	_, stays := f.listed[c.name]
	for of := range f.target {
		if (!stays || of.cluster == c.name) && !w.isWell(part, of) {
			w.fail(fmt.Errorf("preview: instances of %s/%s are removed when the others are available, and %s/%s is not", c.name, s.name, of.cluster, of.podSet))
		}
	}
}

// setAt is the podSet that runs at a place; nil: there is none.
func (w *world) setAt(a object, at place) *set {
	part, ok := apiserver.Find[*v1beta1.AdvDeployment](w.members[at.cluster].Store, parts, apiserver.Key(a))
	if !ok || w.runs[part.UID] == nil {
		return nil
	}
	return w.runs[part.UID].podSets[at.podSet]
}

// isWell says whether all instances of a podSet are available, whatever they have.
func (w *world) isWell(a object, at place) bool {
	s := w.setAt(a, at)
	return s != nil && s.count(up) == s.follows.replicas
}

// isDone says whether a podSet has what is asked for, in all instances. Its grant may be taken back
// when it is, which is another thing that its controller follows.
func (w *world) isDone(a object, f *foreseen, at place) bool {
	s := w.setAt(a, at)
	return s != nil && s.asked.content == f.target[at] && s.follows.content == f.target[at] && s.hasIt()
}

// cameAbout judges, when all has come about, whether it is what was told.
func (f *foreseen) cameAbout() error {
	told := map[fate]int{}
	for _, changes := range append([][]foresight.Change{f.preview.AtOnce, f.preview.Last}, stagesOf(&f.preview)...) {
		for _, c := range changes {
			told[fate{place{c.Cluster, c.PodSet}, c.Effect}] += c.Instances
		}
	}
	var wrong []string
	for _, of := range fates(told, f.happened) {
		if told[of] != f.happened[of] {
			wrong = append(wrong, fmt.Sprintf("%s/%s: %s, and it was %d", of.cluster, of.podSet, foresight.Words(of.effect, told[of]), f.happened[of]))
		}
	}
	switch {
	case len(f.preview.Problems) > 0:
		return fmt.Errorf("preview: %v, and all came about", f.preview.Problems)
	case len(wrong) > 0:
		return fmt.Errorf("preview: %s", strings.Join(wrong, "; "))
	case !slices.Equal(f.gates, f.waits()):
		return fmt.Errorf("preview: the rollout waits for confirmations after the stages %q, and it did after %q", f.waits(), f.gates)
	}
	return nil
}

func stagesOf(p *foresight.Preview) (out [][]foresight.Change) {
	for i := range p.Stages {
		out = append(out, p.Stages[i].Changes)
	}
	return out
}

// fates of several counts, each once, in order.
func fates(counts ...map[fate]int) (out []fate) {
	for _, count := range counts {
		for of := range count {
			if !slices.Contains(out, of) {
				out = append(out, of)
			}
		}
	}
	slices.SortFunc(out, func(a, b fate) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return out
}
