package fleet

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/effect"
	"tkestack.io/tapp/plan/podset"
	"tkestack.io/tapp/test/sim/apiserver"
)

// running is what a member runs of a part. Its worker carries the part to the podSets; each
// of them has a controller of its own, which follows later; and that one takes instances out
// of service and brings them back.
type running struct {
	// generation of the part that was carried out.
	generation int64
	podSets    map[string]*set
}

// set is one podSet that runs.
type set struct {
	name           string
	asked, follows order
	instances      []instance
	// leaves: the part does not ask for it any more.
	leaves bool
}

// order is what a podSet is to be. Grant is how many of its instances may be unavailable by
// an update; nil: one.
type order struct {
	content, image string
	// shape is what happens to a running pod if it changes. New instances begin with former,
	// which those have whose turn has not come; nil: with the content itself.
	shape    shape
	former   *former
	replicas int32
	// start is the first id, and shared says that no other cluster may have the ids.
	start  int32
	shared bool
	grant  *int32
	paused bool
}

// former content of a podSet that changes.
type former struct {
	content, image string
	shape          shape
}

// instance with its id that is up, out of service for an update, or down by itself.
type instance struct {
	id                    int32
	content, image, state string
	shape                 shape
}

const (
	up   = "up"
	out  = "out"
	away = "down"
)

// isBad says whether instances of an image never become available.
func isBad(image string) bool { return strings.HasSuffix(image, "-bad") }

func same(a, b order) bool {
	grants := a.grant == b.grant || a.grant != nil && b.grant != nil && *a.grant == *b.grant
	formers := a.former == b.former || a.former != nil && b.former != nil && *a.former == *b.former
	a.grant, b.grant, a.former, b.former = nil, nil, nil, nil
	return grants && formers && a == b
}

// imageOf a unit.
func imageOf(u *podset.Unit) string {
	if t := u.Content.Template; t != nil && len(t.Spec.Containers) > 0 {
		return t.Spec.Containers[0].Image
	}
	return u.Content.Image
}

// leftOver is a podSet that is not asked for any more, and goes when all others of the part
// are at rest; nil: there is none.
func (r *running) leftOver() (out *set) {
	for _, name := range apiserver.SortedKeys(r.podSets) {
		s := r.podSets[name]
		if !s.leaves && !s.isAtRest() {
			return nil
		}
		if s.leaves && out == nil {
			out = s
		}
	}
	return out
}

// apply has the podSets be asked for what the part says.
func (w *world) apply(c *cluster, r *running, p *v1beta1.AdvDeployment, units []podset.Unit) {
	wanted := map[string]bool{}
	for i := range units {
		u, placed := &units[i], &p.Spec.Topology.PodSets[i]
		wanted[u.PodSet.Name] = true
		s := r.podSets[u.PodSet.Name]
		if s == nil {
			s = &set{name: u.PodSet.Name}
			r.podSets[u.PodSet.Name] = s
		}
		s.asked = order{content: u.Hash, image: imageOf(u), shape: shapeOf(u), replicas: u.Replicas, shared: u.PodSet.Name == shared, grant: placed.MaxUnavailable, paused: p.Spec.UpdateStrategy.Paused || placed.Paused}
		if u.From != nil && u.From.Hash != u.Hash {
			was := podset.Unit{Content: u.From.Content}
			s.asked.former = &former{u.From.Hash, imageOf(&was), shapeOf(&was)}
		}
		if placed.Ordinals != nil {
			s.asked.start = placed.Ordinals.Start
		}
	}
	for name, s := range r.podSets {
		s.leaves = !wanted[name]
	}
	r.generation = p.Generation
}

func (s *set) count(state string) (n int32) {
	for i := range s.instances {
		if s.instances[i].state == state {
			n++
		}
	}
	return n
}

func (s *set) updated() (n int32) {
	for i := range s.instances {
		if s.instances[i].content == s.follows.content {
			n++
		}
	}
	return n
}

// isDone says whether a podSet is as it was asked to be, and all of it is available.
func (s *set) isDone() bool {
	return same(s.asked, s.follows) && s.hasIt()
}

// hasIt says whether all of a podSet has the content that it follows, and is available.
func (s *set) hasIt() bool {
	n := int32(len(s.instances))
	return n == s.follows.replicas && s.count(up) == n && s.updated() == n
}

// isAtRest says whether a podSet is done, or has all instances available and may take none
// out of service.
func (s *set) isAtRest() bool {
	n, grant := int32(len(s.instances)), s.follows.grant
	return s.isDone() || same(s.asked, s.follows) && grant != nil && *grant == 0 && n == s.follows.replicas && s.count(up) == n
}

// live is the next thing that happens to the podSets of a part; nil: nothing.
func (w *world) live(c *cluster, p *v1beta1.AdvDeployment) func() {
	has := w.runs[p.UID]
	if has == nil || p.DeletionTimestamp != nil {
		return nil
	}
	for _, name := range apiserver.SortedKeys(has.podSets) {
		if do := w.act(c, p, has.podSets[name]); do != nil {
			return do
		}
	}
	return nil
}

// act is the next thing that the controller of a podSet does.
func (w *world) act(c *cluster, p *v1beta1.AdvDeployment, s *set) func() {
	if !same(s.asked, s.follows) {
		return func() { s.follows = s.asked }
	}
	if i := slices.IndexFunc(s.instances, func(one instance) bool {
		return one.id < s.follows.start || one.id >= s.follows.start+s.follows.replicas
	}); i >= 0 {
		return func() {
			w.happens(c, p, s, effect.ScaleDown, 1)
			s.instances = slices.Delete(s.instances, i, i+1)
		}
	}
	if int32(len(s.instances)) < s.follows.replicas {
		return func() {
			id := s.follows.start
			for slices.ContainsFunc(s.instances, func(one instance) bool { return one.id == id }) {
				id++
			}
			made := instance{id, s.follows.content, s.follows.image, away, s.follows.shape}
			if old := s.follows.former; old != nil {
				made.content, made.image, made.shape = old.content, old.image, old.shape
			}
			s.instances = append(s.instances, made)
			w.happens(c, p, s, effect.Create, 1)
			w.twice(c, p, s, id)
		}
	}
	grant := int32(1)
	if s.follows.grant != nil {
		grant = *s.follows.grant
	}
	for i := range s.instances {
		one := &s.instances[i]
		old := one.content != s.follows.content
		switch {
		case one.state != up && old && !s.follows.paused:
			return func() { w.renew(c, p, s, one) }
		case one.state != up && !isBad(one.image):
			return func() { one.state = up }
		case one.state == up && old && !s.follows.paused && s.count(out)+s.count(away) < grant:
			return func() {
				w.startsFailed(c, p, s)
				w.renew(c, p, s, one)
				one.state = out
				w.takenOut(c, p)
			}
		}
	}
	return nil
}

// renew gives an instance the content that its podSet asks for.
func (w *world) renew(c *cluster, p *v1beta1.AdvDeployment, s *set, one *instance) {
	if effect := one.shape.to(s.follows.shape); effect != "" {
		w.happens(c, p, s, effect, 1)
	}
	one.content, one.image, one.shape = s.follows.content, s.follows.image, s.follows.shape
}

// failOne has an instance of a member fail by itself.
func (w *world) failOne(c *cluster, n int) {
	var all []*instance
	for _, p := range apiserver.All[*v1beta1.AdvDeployment](c.Store, parts) {
		if has := w.runs[p.UID]; has != nil {
			for _, name := range apiserver.SortedKeys(has.podSets) {
				for i := range has.podSets[name].instances {
					all = append(all, &has.podSets[name].instances[i])
				}
			}
		}
	}
	if len(all) > 0 {
		if one := all[n%len(all)]; one.state == up {
			one.state = away
		}
	}
}

// current instances as a worker tells them: where some are left whose ids the podSet has no more, more
// than it is to have, though others may be missing.
func (s *set) current() int32 {
	n, left := int32(len(s.instances)), int32(0)
	for i := range s.instances {
		if id := s.instances[i].id; id < s.follows.start || id >= s.follows.start+s.follows.replicas {
			left++
		}
	}
	if left > 0 {
		n = max(n, s.follows.replicas+left)
	}
	return n
}

// status of a part; one that is wrong says that nothing runs.
func (r *running) status(p *v1beta1.AdvDeployment, wrong bool) v1beta1.AdvDeploymentStatus {
	status := *p.Status.DeepCopy()
	status.ObservedGeneration = r.generation
	sums := v1beta1.AdvDeploymentAggregate{Status: v1beta1.PhaseRunning}
	for _, name := range apiserver.SortedKeys(r.podSets) {
		sums.OwnerResource = append(sums.OwnerResource, "TApp/"+name)
	}
	for i := range p.Spec.Topology.PodSets {
		s := &p.Spec.Topology.PodSets[i]
		has := r.podSets[s.Name]
		if has == nil {
			has = &set{}
		}
		one := v1beta1.PodSetStatus{Name: s.Name, Desired: has.asked.replicas, Available: has.count(up), Version: s.Version,
			Observed: same(has.asked, has.follows), Revision: has.asked.content, Budget: has.asked.grant}
		updated := has.updated()
		if !one.Observed {
			updated = 0
		}
		if wrong {
			one.Available = 0
		}
		one.UnAvailable = max(0, one.Desired-one.Available)
		one.Update, one.Current = new(updated), new(has.current())
		sums.Desired += one.Desired
		sums.Available += one.Available
		sums.UnAvailable += one.UnAvailable
		sums.PodSets = append(sums.PodSets, one)
	}
	status.AggrStatus = sums
	ready := metav1.ConditionTrue
	if sums.Available != sums.Desired || len(r.podSets) > len(p.Spec.Topology.PodSets) {
		ready = metav1.ConditionFalse
	}
	if len(status.Conditions) == 0 || status.Conditions[0].Status != ready || status.Conditions[0].ObservedGeneration != p.Generation {
		status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Status: ready, Reason: v1beta1.ReasonSynced, ObservedGeneration: p.Generation}}
	}
	return status
}
