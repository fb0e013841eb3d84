package fleet

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
	"tkestack.io/tapp/test/sim/apiserver"
)

const (
	canary = "canary"
	blue   = "blue"
)

// groupOf a podSet: where there are groups, the first podSet of a cluster is its canary, and the
// second one blue. Elsewhere all are in none.
func (w *world) groupOf(podSet string) string {
	switch {
	case !w.plan.Grouped:
		return ""
	case strings.HasSuffix(podSet, "-a"):
		return canary
	}
	return blue
}

// inGroups has users say which group each podSet of an AppSet is in. There is always a blue one: a
// spec whose stages name a group that there is not is refused.
func (w *world) inGroups(a *v1beta1.AppSet) {
	if !w.plan.Grouped {
		return
	}
	clusters := a.Spec.ClusterTopology.Clusters
	if !slices.ContainsFunc(w.teams(&a.Spec), func(t team) bool { return t.group == blue }) {
		clusters[0].PodSets = append(clusters[0].PodSets, podSet(clusters[0].Name, "b", 1))
	}
	for i := range clusters {
		podSets := clusters[i].PodSets
		for k := range podSets {
			podSets[k].Meta = map[string]string{v1beta1.LabelGroup: w.groupOf(podSets[k].Name)}
		}
	}
}

// team is what changes together: the podSets of a cluster that are in one group.
type team struct{ cluster, group string }

func (t team) String() string { return strings.TrimSuffix(t.cluster+"/"+t.group, "/") }

func doneKey(image string, t team) string { return image + " " + t.String() }

// teams of a spec, in its order.
func (w *world) teams(s *v1beta1.AppSetSpec) (out []team) {
	for i := range s.ClusterTopology.Clusters {
		t := &s.ClusterTopology.Clusters[i]
		for k := range t.PodSets {
			if one := (team{t.Name, w.groupOf(t.PodSets[k].Name)}); !slices.Contains(out, one) {
				out = append(out, one)
			}
		}
	}
	return out
}

// leg of a rollout: its teams change after those of the legs before it.
type leg struct {
	name    string
	confirm bool
	has     func(team) bool
}

// legs of a rollout by the spec at its beginning, in the words of the documentation: the stages
// as written; or the canary clusters and the groups in their order; and then all others.
func (w *world) legs(spec *v1beta1.AppSetSpec) (out []leg) {
	s, all := &spec.UpdateStrategy, w.teams(spec)
	add := func(name string, confirm bool, has func(team) bool) { out = append(out, leg{name, confirm, has}) }
	for i := range s.Stages {
		stage := &s.Stages[i]
		add(stage.Name, *stage.Confirm, func(t team) bool {
			return (len(stage.Clusters) == 0 || slices.Contains(stage.Clusters, t.cluster)) && (len(stage.Groups) == 0 || slices.Contains(stage.Groups, t.group))
		})
	}
	var order []string
	if s.UpgradeType != "" {
		order = strings.Split(s.UpgradeType, "|")
	}
	canaries := slices.Contains(order, canary)
	if canaries || len(s.CanaryClusters) > 0 {
		add(canary, s.NeedWaitingForConfirm, func(t team) bool {
			switch {
			case len(s.CanaryClusters) == 0:
				return t.group == canary
			case !slices.Contains(s.CanaryClusters, t.cluster):
				return false
			}
			return t.group == canary || !canaries || !slices.Contains(all, team{t.cluster, canary})
		})
	}
	first := true
	for _, group := range order {
		if group == canary {
			continue
		}
		late := first && canaries // canaries elsewhere go with the first of the other groups
		first = false
		add(group, s.NeedWaitingForConfirm, func(t team) bool { return t.group == group || late && t.group == canary })
	}
	add("rest", s.NeedWaitingForConfirm, func(team) bool { return true })
	return out
}

func legOf(order []leg, t team) int {
	return slices.IndexFunc(order, func(l leg) bool { return l.has(t) })
}

// judgeUnits is F4, F9 and F10: of the units that a write gives what is asked for.
func (w *world) judgeUnits(c *cluster, r *request, before, after *v1beta1.AdvDeployment) error {
	a, ok := apiserver.Find[*v1beta1.AppSet](w.hub.Store, appSets, apiserver.Key(after))
	if !ok || string(a.UID) != after.Labels[v1beta1.LabelAppSetUID] || before.Labels[v1beta1.LabelAppSetUID] != string(a.UID) || r.abandoned.Load() || r.replica.IsDead() {
		return nil
	}
	p := w.promised(a)
	main := a.Spec.PodSpec.Template.Spec.Containers[0].Image
	if p.settled[main] || w.isUnsure(p) {
		return nil
	}
	title := titleOf(c, after)
	type start struct {
		team
		repair bool
	}
	var starts []start
	had := w.placed(c, before)
	for _, u := range w.placed(c, after) {
		i := slices.IndexFunc(had, func(o podset.Unit) bool { return o.PodSet.Name == u.PodSet.Name })
		if i >= 0 && u.Replicas > 0 && imageOf(&u) == main && imageOf(&had[i]) != main {
			starts = append(starts, start{team{title, w.groupOf(u.PodSet.Name)}, w.isRepair(p, before, u.PodSet.Name)})
		}
	}
	if len(starts) == 0 {
		return nil
	}
	record := w.recorded(a)
	spec, known := p.begun(a, record.ID)
	switch {
	case !known || spec.PodSpec.Template.Spec.Containers[0].Image != main:
		return fmt.Errorf("F4: %s is given %s, and the rollout on record is %q", title, main, record.ID)
	case record.Halted != "":
		return fmt.Errorf("F10: %s is given %s, and rollout %s has halted: %s", title, main, record.ID, record.Halted)
	}
	w.coverage["F4, F9 and F10 judged"]++
	for _, s := range starts {
		switch err := w.judgeOrder(s.team, a, &spec, record.ID, main); {
		case err != nil && s.repair:
			w.coverage["given before its turn"]++
		case err != nil:
			return err
		}
	}
	return nil
}

// isRepair says whether a podSet need not wait for its turn: no content has ever run everywhere, so
// that there is none to go back to, and instances of it are not available.
func (w *world) isRepair(p *promise, part *v1beta1.AdvDeployment, podSet string) bool {
	has := w.runs[part.UID]
	if p.proven || has == nil {
		return false
	}
	s := has.podSets[podSet]
	return s != nil && s.count(up) < s.asked.replicas
}

// judgeOrder is F4 and F9: what has to be done and confirmed before a team starts.
func (w *world) judgeOrder(t team, a *v1beta1.AppSet, spec *v1beta1.AppSetSpec, id, main string) error {
	p, order := w.promised(a), w.legs(spec)
	at, work := legOf(order, t), map[int]bool{}
	sure := !p.lenient && !slices.ContainsFunc(w.plan.Edits, func(e Edit) bool { return e.Kind == "maintain" && e.Step <= w.steps })
	changing := map[string]bool{t.cluster: true}
	for _, other := range w.teams(spec) {
		k := legOf(order, other)
		if k > at || !w.alwaysRuns(p, a, id, other) {
			continue
		}
		work[k] = true
		done := p.done[doneKey(main, other)]
		switch {
		case done:
		case k == at:
			if w.hasBegun(a, other, main) {
				changing[other.cluster] = true
			}
		case sure:
			return fmt.Errorf("F9: %s is given %s, and %s of stage %s never had it in all instances", t, main, other, order[k].name)
		}
	}
	for k, before := range order[:at] {
		if work[k] && before.confirm && !p.confirmed[gate(id, before.name, "")] && !(w.forgot && p.agreed[gate(main, before.name)]) {
			return fmt.Errorf("F4: %s is given %s, and nobody confirmed stage %s of rollout %s", t, main, before.name, id)
		}
	}
	if n := int32(len(changing)); sure && !w.forgot && n > p.concurrent {
		return fmt.Errorf("F9: %s is given %s as the cluster number %d at once of stage %s, and %d may change", t, main, n, order[at].name, p.concurrent)
	}
	return nil
}

// hasBegun says whether a team is given an image.
func (w *world) hasBegun(a *v1beta1.AppSet, t team, image string) bool {
	member, part := w.partOf(a, t.cluster)
	return part != nil && slices.ContainsFunc(w.placed(member, part), func(u podset.Unit) bool {
		return u.Replicas > 0 && w.groupOf(u.PodSet.Name) == t.group && imageOf(&u) == image
	})
}

// alwaysRuns says whether a team had instances in all specs since a rollout began.
func (w *world) alwaysRuns(p *promise, a *v1beta1.AppSet, id string, t team) bool {
	_, text, _ := strings.Cut(id, "-")
	from, _ := strconv.ParseInt(text, 10, 64)
	for generation := from; generation <= a.Generation; generation++ {
		spec, known := p.specs[specKey(a, strconv.FormatInt(generation, 10))]
		if !known || !slices.Contains(w.teams(&spec), t) {
			return false
		}
		for i := range spec.ClusterTopology.Clusters {
			c := &spec.ClusterTopology.Clusters[i]
			if c.Name == t.cluster && slices.ContainsFunc(c.PodSets, func(s v1beta1.PodSet) bool { return w.groupOf(s.Name) == t.group && s.Replicas.IntValue() == 0 }) {
				return false
			}
		}
	}
	return true
}
