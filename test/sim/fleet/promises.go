package fleet

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/test/sim/apiserver"
)

// promise is what the spec of an AppSet promises about its rollouts, by what users wrote.
// It knows nothing of how rollouts are planned.
type promise struct {
	// budget is the largest that ever was; unlimited: there was none at some time.
	budget    int32
	unlimited bool
	// concurrent is how many clusters may ever change at once; lenient: more than one may
	// fail; meddled: somebody edited parts.
	concurrent       int32
	lenient, meddled bool
	// proven: a rollout was done. Before, what is stable may never have run everywhere.
	proven bool
	// ran: the hub told of an available instance of this UID.
	ran bool
	// images that users asked for, each once in a row.
	images []string
	// specs by generation, of this UID of the AppSet.
	specs map[string]v1beta1.AppSetSpec
	// settled images may be returned to without gates.
	settled map[string]bool
	// done are image and team, where all instances were available with it.
	done map[string]bool
	// tokens that were told, with rollout and stage, and gates that were confirmed by them.
	tokens, confirmed map[string]bool
	// agreed are image and stage of all that was confirmed, whatever the rollout.
	agreed  map[string]bool
	retried time.Time
	// halted is when the rollout on record halted; zero: it goes on.
	halted time.Time
}

func (w *world) promised(a object) *promise {
	key := apiserver.Key(a)
	p := w.promises[key]
	if p == nil {
		p = &promise{concurrent: 1, specs: map[string]v1beta1.AppSetSpec{}, settled: map[string]bool{}, done: map[string]bool{}, tokens: map[string]bool{}, confirmed: map[string]bool{}, agreed: map[string]bool{}}
		w.promises[key] = p
	}
	return p
}

func specKey(a *v1beta1.AppSet, generation string) string { return string(a.UID) + "/" + generation }

// note what a user wrote.
func (p *promise) note(a *v1beta1.AppSet) {
	s := &a.Spec.UpdateStrategy
	main := a.Spec.PodSpec.Template.Spec.Containers[0].Image
	if len(p.images) == 0 || p.images[len(p.images)-1] != main {
		p.images = append(p.images, main)
	}
	if a.Generation == 1 {
		p.settled[main], p.ran, p.proven = true, false, false // an installation has no gates
	}
	p.specs[specKey(a, strconv.FormatInt(a.Generation, 10))] = *a.Spec.DeepCopy()
	if s.MaxUnavailable == nil {
		p.unlimited = true
	} else {
		p.budget = max(p.budget, s.MaxUnavailable.IntVal)
	}
	for _, n := range concurrencies(s) {
		p.concurrent = max(p.concurrent, n)
	}
	p.lenient = p.lenient || s.MaxFailures != nil && s.MaxFailures.IntVal > 0
}

func concurrencies(s *v1beta1.UpdateStrategy) (out []int32) {
	for _, n := range append([]*intstr.IntOrString{s.MaxConcurrentClusters}, limits(s)...) {
		if n != nil {
			out = append(out, n.IntVal)
		}
	}
	return out
}

func limits(s *v1beta1.UpdateStrategy) (out []*intstr.IntOrString) {
	for i := range s.Stages {
		out = append(out, s.Stages[i].MaxConcurrentClusters)
	}
	return out
}

// recorded is what the hub has on record of a rollout.
type recorded struct {
	ID          string `json:"id"`
	Halted      string `json:"halted"`
	RollingBack bool   `json:"rollingBack"`
	Done        bool   `json:"done"`
	Installing  bool   `json:"installing"`
}

func (w *world) recorded(a object) (out recorded) {
	r, ok := apiserver.Find[*appsv1.ControllerRevision](w.hub.Store, apiserver.Revisions, apiserver.KeyOf(a.GetNamespace(), a.GetName()+v1beta1.RecordSuffix))
	if ok {
		_ = json.Unmarshal([]byte(r.Annotations[v1beta1.AnnotationRecord]), &out)
	}
	return out
}

// noteStatus remembers the gates that a status tells of, and whether it tells of anything that
// runs, and noteGrant what confirms them.
func (p *promise) noteStatus(a *v1beta1.AppSet) {
	p.ran = p.ran || a.Status.AggrStatus.Available > 0
	if s := waiting(a); s != nil {
		p.tokens[gate(idOf(a), s.Name, s.Token)] = true
	}
}

func (w *world) noteGrant(c *v1beta1.Confirmation) {
	a, ok := apiserver.Find[*v1beta1.AppSet](w.hub.Store, appSets, apiserver.KeyOf(c.Namespace, c.Spec.AppSet))
	if !ok {
		return
	}
	p := w.promised(a)
	if !p.tokens[gate(c.Spec.Rollout, c.Spec.Stage, c.Spec.Token)] {
		return
	}
	p.confirmed[gate(c.Spec.Rollout, c.Spec.Stage, "")] = true
	if spec, known := p.begun(a, c.Spec.Rollout); known {
		p.agreed[gate(spec.PodSpec.Template.Spec.Containers[0].Image, c.Spec.Stage)] = true
	}
}

func gate(parts ...string) string { return strings.Join(parts, " ") }

// noteDone remembers that teams of a cluster have all instances available with an image.
func (w *world) noteDone(c *cluster, p *v1beta1.AdvDeployment, has *running) {
	images, undone := map[string]string{}, map[string]bool{}
	for _, s := range has.podSets {
		if s.asked.replicas == 0 {
			continue
		}
		group := w.groupOf(s.name)
		undone[group] = undone[group] || !s.isDone() || images[group] != "" && images[group] != s.asked.image
		images[group] = s.asked.image
	}
	for group, main := range images {
		if !undone[group] {
			w.promised(p).done[doneKey(main, team{titleOf(c, p), group})] = true
		}
	}
}

// noteRecord remembers which contents became stable.
func (w *world) noteRecord(r *appsv1.ControllerRevision) {
	name, is := strings.CutSuffix(r.Name, v1beta1.RecordSuffix)
	if !is {
		return
	}
	a, ok := apiserver.Find[*v1beta1.AppSet](w.hub.Store, appSets, apiserver.KeyOf(r.Namespace, name))
	if !ok {
		return
	}
	record, p := w.recorded(a), w.promised(a)
	switch {
	case record.Halted == "" || record.RollingBack:
		p.halted = time.Time{}
	case p.halted.IsZero():
		p.halted = w.now()
	}
	p.proven = p.proven || record.Done
	if spec, known := p.begun(a, record.ID); known && (record.Done || record.Installing && !p.ran) {
		p.settled[spec.PodSpec.Template.Spec.Containers[0].Image] = true
	}
}

// begun is the spec that a rollout began with.
func (p *promise) begun(a *v1beta1.AppSet, id string) (v1beta1.AppSetSpec, bool) {
	_, generation, _ := strings.Cut(id, "-")
	spec, known := p.specs[specKey(a, generation)]
	return spec, known
}

// isUnsure says whether promises about rollouts cannot be judged any more: the hub or the
// member was restored from a backup, or somebody edited parts.
func (w *world) isUnsure(p *promise) bool {
	return w.lost || w.restores > 0 || p.meddled
}

// takenOut is F1: no more instances are voluntarily out of service than the budget allows.
func (w *world) takenOut(c *cluster, part *v1beta1.AdvDeployment) {
	p := w.promised(part)
	if p.unlimited || p.budget == 0 || w.forgot || w.isUnsure(p) {
		return
	}
	w.coverage["F1 judged"]++
	n := int32(0)
	for _, name := range w.names {
		one, ok := apiserver.Find[*v1beta1.AdvDeployment](w.members[name].Store, parts, apiserver.Key(part))
		if !ok || w.runs[one.UID] == nil {
			continue
		}
		for _, s := range w.runs[one.UID].podSets {
			n += s.count(out)
		}
	}
	if n > p.budget {
		w.fail(fmt.Errorf("F1: %d instances of %s are out of service for an update, the last one in %s, and the budget is %d", n, part.Name, c.name, p.budget))
	}
}

// haltTime is within which all clusters that answer are told that a rollout has halted.
const haltTime = 15 * time.Second

// startsFailed is F10 where it counts: an instance that is well is given what failed. Its
// worker may be late; what it follows is judged when it follows all that it was told. Only
// runs in which clusters answer are judged.
func (w *world) startsFailed(c *cluster, part *v1beta1.AdvDeployment, s *set) {
	p := w.promised(part)
	if !w.plan.Orderly || p.halted.IsZero() || w.now().Sub(p.halted) < haltTime || w.runs[part.UID].generation != part.Generation || p.settled[s.follows.image] {
		return
	}
	w.coverage["F10 judged in instances"]++
	w.fail(fmt.Errorf("F10: an instance of %s in %s that is well is given %s, which failed %s ago", s.name, c.name, s.follows.image, w.now().Sub(p.halted)))
}

// replaced says that the part was written for a cluster that the operator has accepted another
// one for: what still runs there is the operator's to end.
func (w *world) replaced(c *cluster, part *v1beta1.AdvDeployment) bool {
	s, ok := apiserver.Find[*corev1.Secret](w.hub.Store, apiserver.Secrets, apiserver.KeyOf(registry, titleOf(c, part)))
	return ok && s.Labels[v1beta1.LabelReplacesUID] == string(c.uid)
}

// twice is F5: no id of a podSet that clusters share is in two of them.
func (w *world) twice(c *cluster, part *v1beta1.AdvDeployment, s *set, id int32) {
	if !s.follows.shared || w.replaced(c, part) {
		return
	}
	w.coverage["F5 judged"]++
	for _, name := range w.names {
		one, ok := apiserver.Find[*v1beta1.AdvDeployment](w.members[name].Store, parts, apiserver.Key(part))
		if name == c.name || !ok || w.runs[one.UID] == nil || w.runs[one.UID].podSets[shared] == nil || w.replaced(w.members[name], one) {
			continue
		}
		if slices.ContainsFunc(w.runs[one.UID].podSets[shared].instances, func(i instance) bool { return i.id == id }) {
			w.fail(fmt.Errorf("F5: %s and %s both run the instance %d of %s of %s", name, c.name, id, shared, part.Name))
		}
	}
}
