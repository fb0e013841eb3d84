package fleet

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/test/sim/apiserver"
)

const (
	// mostDelay of a write by other members that are silent: one request's timeout, and a
	// little for what is done between two requests.
	mostDelay = 11 * time.Second
	// wellTime is how long a member has to have answered to count as one that can be written
	// to: one that was away is Ready after 5 minutes at the latest.
	wellTime = 6 * time.Minute
	// firstTime is how long a process takes to know a member.
	firstTime = 30 * time.Second
)

// wait for an answer that did not come. cut: it could not, and its turn is not only late.
type wait struct {
	from, to time.Time
	cut      bool
}

func (w *world) isCut(name string) bool { return w.is(cutThere, name) || w.is(cutBack, name) }

// silences are what a process waited for in vain, and when it could do better. They are
// guarded by the mutex of the replica.
type silences struct {
	// waits of syncs, by the key of the AppSet and then by member.
	waits map[string]map[string][]wait
	// unwell is when a member last did not answer.
	unwell map[string]time.Time
	// known is when a member answered first.
	known map[string]time.Time
	// tried is when a part was last written, by member and key.
	tried map[string]time.Time
	// learnt is when the process was told of a spec, by UID and generation.
	learnt map[string]time.Time
}

func newSilences() silences {
	return silences{waits: map[string]map[string][]wait{}, unwell: map[string]time.Time{}, known: map[string]time.Time{}, tried: map[string]time.Time{}, learnt: map[string]time.Time{}}
}

// asked is told of each request to a member, and of the sync that it was made in.
func (r *replica) asked(name, key string, w wait, answered bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case answered && r.known[name].IsZero():
		r.known[name] = w.to
	case !answered:
		r.unwell[name] = w.to
		if key != "" && w.cut {
			if r.waits[key] == nil {
				r.waits[key] = map[string][]wait{}
			}
			r.waits[key][name] = append(r.waits[key][name], w)
		}
	}
}

// attempt to write a part: it returns when the last one was made.
func (r *replica) attempt(member, key string, at time.Time) (before time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before = r.tried[member+" "+key]
	r.tried[member+" "+key] = at
	return before
}

// learn notes when a process is told of specs.
func (w *world) learn(r *replica, told int64) {
	history := w.hub.Tables[appSets].History
	for i := len(history) - 1; i >= 0 && history[i].Version > r.told.Load(); i-- {
		if a, ok := history[i].After.(*v1beta1.AppSet); ok && history[i].Version <= told {
			key := specKey(a, fmt.Sprint(a.Generation))
			if _, known := r.learnt[key]; !known {
				r.learnt[key] = w.now()
			}
		}
	}
}

// vain is how long a process waited in vain for members but one, within a span of time, in
// syncs of one AppSet.
func (r *replica) vain(key, but string, from, to time.Time) (sum time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []wait
	for _, name := range slices.Sorted(maps.Keys(r.waits[key])) {
		if name != but {
			all = append(all, r.waits[key][name]...)
		}
	}
	slices.SortFunc(all, func(a, b wait) int { return a.from.Compare(b.from) })
	for _, x := range all {
		if x.from.Before(from) {
			x.from = from // and what waits beside another counts once
		}
		if x.to.After(x.from) && !x.to.After(to) {
			sum += x.to.Sub(x.from)
			from = x.to
		}
	}
	return sum
}

// judgeDelay is F8: silent members do not delay what is written to another one. It is judged
// where a write scales, since that waits for nothing but to be known: it is no rollout, and
// goes to all clusters at once; and in runs in which nothing else goes wrong.
func (w *world) judgeDelay(c *cluster, r *request, before, after *v1beta1.AdvDeployment) error {
	a, ok := apiserver.Find[*v1beta1.AppSet](w.hub.Store, appSets, apiserver.Key(after))
	if !ok || string(a.UID) != after.Labels[v1beta1.LabelAppSetUID] || before.Labels[v1beta1.LabelAppSetUID] != string(a.UID) {
		return nil
	}
	p := w.promised(a)
	if !w.plan.Silent || w.isUnsure(p) {
		return nil
	}
	var since time.Time
	for i := range after.Spec.Topology.PodSets {
		now := &after.Spec.Topology.PodSets[i]
		had := slices.IndexFunc(before.Spec.Topology.PodSets, func(s v1beta1.PlacedPodSet) bool { return s.Name == now.Name })
		if had < 0 || before.Spec.Topology.PodSets[had].Replicas.IntVal == now.Replicas.IntVal {
			continue
		}
		if at := p.askedSince(r.replica, a, c.name, now); at.After(since) {
			since = at
		}
	}
	key := apiserver.Key(a)
	r.replica.mu.Lock()
	known, unwell := r.replica.known[c.name], r.replica.unwell[c.name]
	r.replica.mu.Unlock()
	if since.IsZero() || known.IsZero() || !unwell.IsZero() && since.Sub(unwell) < wellTime {
		return nil
	}
	for _, at := range []time.Time{r.before, known.Add(firstTime), w.hubRefused} {
		if at.After(since) {
			since = at
		}
	}
	w.coverage["F8 judged"]++
	if sum := r.replica.vain(key, c.name, since, r.issued); sum > 0 {
		w.coverage["F8 judged, beside a silent member"]++
		if sum > mostDelay {
			return fmt.Errorf("F8: %s is scaled %s after it could be, of which other members were waited for in vain for %s", c.name, r.issued.Sub(since), sum)
		}
	}
	return nil
}

// askedSince is when a process was told of the first of the specs that ask for so many
// instances of a podSet, up to now without a break; zero: that is not known.
func (p *promise) askedSince(r *replica, a *v1beta1.AppSet, cluster string, podSet *v1beta1.PlacedPodSet) (since time.Time) {
	for generation := a.Generation; generation > 0; generation-- {
		key := specKey(a, fmt.Sprint(generation))
		at, told := r.learnt[key]
		spec, known := p.specs[key]
		switch {
		case !told && since.IsZero():
			continue // it is not known there yet
		case !told || !known:
			return time.Time{} // nor when this one was
		case !asks(&spec, cluster, podSet):
			return since
		}
		since = at
	}
	return since
}

func asks(s *v1beta1.AppSetSpec, cluster string, podSet *v1beta1.PlacedPodSet) bool {
	return slices.ContainsFunc(s.ClusterTopology.Clusters, func(t v1beta1.TargetCluster) bool {
		return t.Name == cluster && slices.ContainsFunc(t.PodSets, func(x v1beta1.PodSet) bool {
			return x.Name == podSet.Name && x.Replicas.IntVal == podSet.Replicas.IntVal
		})
	})
}

// silence has the same two or three members fall silent at once, again and again, when all
// clusters are to change: the first ones, which stand before the others in each list.
func (p *Plan) silence(rng *rand.Rand) {
	app := appKeys()[0]
	p.Horizon, p.Members, p.Edits, p.Faults = 150, 5, []Edit{{Step: 1, App: app, Kind: "create"}}, nil
	p.Tight, p.Silent = true, true // a tight one has all clusters in it
	silent := 2 + rng.IntN(2)
	for range 2 + rng.IntN(3) {
		at := p.Horizon + 50 + rng.IntN(60)
		p.Horizon = at + 120
		if rng.IntN(2) == 0 { // their caches lack what was written to them last
			for n := range silent {
				p.Faults = append(p.Faults, Fault{Step: at - 50, Kind: dumb, A: 40 + n})
			}
			p.Edits = append(p.Edits, Edit{Step: at - 49, App: app, Kind: "scale all", B: rng.IntN(60)})
		}
		for n := range silent {
			p.Faults = append(p.Faults, Fault{Step: at, Kind: []string{cutThere, cutThere, cutBack}[rng.IntN(3)], A: 40 + n})
		}
		for n := range 1 + rng.IntN(3) {
			p.Edits = append(p.Edits, Edit{Step: at + n*8 + rng.IntN(6), App: app, Kind: "scale all", B: rng.IntN(60)})
		}
	}
}
