package tapp

import (
	"iter"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/ending"
	"tkestack.io/tapp/plan/ids"
	"tkestack.io/tapp/plan/inplace"
	"tkestack.io/tapp/plan/kept"
	"tkestack.io/tapp/plan/message"
	"tkestack.io/tapp/plan/template"
	"tkestack.io/tapp/plan/unready"
)

// state is the bucket of an instance; it is in exactly one.
type state uint8

const (
	missing     state = iota // no pod
	foreign                  // the name is taken by a pod that is not ours
	orphan                   // a pod without a controller that is ours to adopt
	unmatched                // our pod, but the selector no longer matches it
	terminating              // the pod is being deleted, or about to be by Kubernetes
	ended                    // the pod ended
	alive                    // none of these
)

// instance is one id, what the spec asks of it and what was observed. A plan has one
// for each of up to 20,000 ids; so what is small stands together, and costs no padding.
type instance struct {
	id   int
	name string // the id as maps and labels have it

	inRange    bool // one of the ids that the spec asks for
	stopped    bool // by spec.statuses
	completed  bool // ended, and stays as it ended
	claimsLeft bool // scaled down, its pod is gone, and its claims are to follow
	state      state
	updated    bool // the pod follows its template
	updating   bool // the pod is changing in place, or drained for it
	serving    bool // desired, ready, and no interruption of ours is under way
	available  bool // serving for minReadySeconds
	// mayServe: whether it serves is not known. The turns of others do not count it,
	// and a disruption of it needs room in the budget nevertheless.
	mayServe bool
	counted  bool        // its pod goes only when the status has its failures
	next     intent      // see spec.intentOf
	birth    *kept.Birth // which content its next pod gets; nil: its template

	// failures in a row, to be kept while there is no pod that tells of them.
	failures int

	templateName string
	template     *podTemplate // nil: cannot be used, reason says why
	pod          *corev1.Pod
	differs      string            // images that somebody wrote over the template's, while it is updated by its hashes
	hash         string            // the pod's label: of the template that it follows
	progress     *inplace.Progress // nil until it is asked for

	actions []Action
	status  tappv1.InstanceStatus
	// reason and why say what it waits for.
	reason string
	why    string
}

// desired says whether the instance is to have a running pod.
func (i *instance) desired() bool { return i.inRange && !i.stopped && !i.completed }

// hasTemplate says whether the pod has the hash of its template. Its resources may follow later.
func (i *instance) hasTemplate() bool {
	return i.template != nil && i.hash == i.template.Hashes.Template
}

// isDrained says whether the pod is out of its Services for an update: that has
// begun.
func (i *instance) isDrained() bool {
	return i.pod != nil && inplace.HasGate(i.pod) && inplace.GateClosed(i.pod)
}

func (i *instance) act(a Action) {
	i.reason, i.why = "", ""
	a.ID, a.Why = i.name, message.Bound(a.Why)
	i.actions = append(i.actions, a)
	if i.template != nil {
		i.template.actions++
	}
}

// wait notes why nothing is done although the instance is not where the spec
// wants it.
func (i *instance) wait(reason, why string) { i.reason, i.why = reason, message.Bound(why) }

// observe makes an instance of every id in range, of every pod and of every
// claim that is to go, in ascending order, and puts each in its state.
func observe(s *spec, c *clock, in Input, claims *claims) []*instance {
	now := s.idsNow(in.Pods)
	byID := make(map[int]*instance, max(len(now), len(in.Pods)))
	all := make([]*instance, 0, max(len(now), len(in.Pods)))
	pool := make([]instance, len(now))
	for k, id := range now {
		i := &pool[k]
		i.id, i.name, i.inRange = id, strconv.Itoa(id), true
		i.stopped = s.tapp.Spec.Statuses[i.name] == tappv1.InstanceKilled
		byID[id] = i
		all = append(all, i)
	}
	sorted := true
	for _, pod := range in.Pods {
		id, ok := ids.InName(s.tapp.Name, pod.Name)
		if !ok {
			continue // none of our making; it takes no name that we need
		}
		i := byID[id]
		if i == nil {
			i = &instance{id: id, name: strconv.Itoa(id)}
			byID[id] = i
			all = append(all, i)
			sorted = false
		}
		i.pod = pod
	}
	if more := claims.withoutPods(byID); len(more) > 0 {
		all = append(all, more...)
		sorted = false
	}
	if !sorted {
		slices.SortFunc(all, func(a, b *instance) int { return a.id - b.id })
	}
	for _, i := range all {
		s.assignTemplate(i)
		s.look(c, i)
	}
	return slices.DeleteFunc(all, func(i *instance) bool {
		// A pod that is not ours, under a name that we do not need.
		return !i.inRange && i.state == foreign
	})
}

// look puts the instance in its state.
func (s *spec) look(c *clock, i *instance) {
	i.state = s.stateOf(i)
	i.completed = s.isCompleted(i)
	if i.pod != nil {
		i.hash = i.pod.Labels[tappv1.LabelTemplateHash]
	}
	if i.state != alive {
		return
	}
	if i.updated = i.hasTemplate() && inplace.HasResources(i.pod, i.template.Spec); i.updated {
		i.differs = template.Differences(i.pod, i.template.Spec)
	}
	i.updating = !c.isSettled(i)
	// A preview takes orphans for adopted. The plan that decides on losses does not yet.
	opening := unready.Opening(i.pod, c.now)
	i.serving = i.desired() && !i.updating && unready.IsReady(i.pod) && !(s.foresees && s.isOrphan(i)) && !c.waits(opening.Left)
	i.available = i.serving && !c.waits(unready.Soak(i.pod, seconds(s.tapp.Spec.MinReadySeconds), c.now))
	i.mayServe = i.desired() && !i.serving && (i.mayServeYet(opening) || !i.updating && unready.ByOthers(i.pod) || s.stillStarts(c, i))
}

func (s *spec) stateOf(i *instance) state {
	switch pod := i.pod; {
	case pod == nil:
		return missing
	case s.isOrphan(i) && !s.foresees:
		return orphan
	case !controls(s.tapp, pod) && !s.isOrphan(i):
		return foreign
	case pod.DeletionTimestamp != nil, ending.IsCollected(pod):
		return terminating
	case s.selector != nil && !s.selects(pod):
		return unmatched
	case isEnded(pod):
		return ended
	}
	return alive
}

// isOrphan says whether the pod is the TApp's to adopt. The name is the identity, so that
// a label which contradicts it was not put there by a TApp.
func (s *spec) isOrphan(i *instance) bool {
	return metav1.GetControllerOfNoCopy(i.pod) == nil && i.pod.DeletionTimestamp == nil && i.pod.Labels[tappv1.LabelInstanceID] == i.name && s.selects(i.pod)
}

// isSettled says whether no in-place update of the pod is under way. With the
// readiness gate, the gate says so; it opens only after the update. Without it, and
// where tkestack/tapp marked an update, the recorded state does.
func (c *clock) isSettled(i *instance) bool {
	if inplace.HasGate(i.pod) && (!inplace.GateOpen(i.pod) || !inplace.IsMarkedByOriginal(i.pod)) {
		return inplace.GateOpen(i.pod)
	}
	return c.progressOf(i).Done
}

// progressOf is inplace.ProgressOf, asked only once and only where it may not be done:
// reading the record of the last update would be most of the cost of a plan.
func (c *clock) progressOf(i *instance) *inplace.Progress {
	if i.progress == nil {
		i.progress = &inplace.Progress{Done: inplace.CertainlyDone(i.pod)}
		if !i.progress.Done {
			*i.progress = inplace.ProgressOf(i.pod, c.now)
		}
		if i.progress.Left > 0 {
			c.waitFor(i.progress.Left)
		}
	}
	return i.progress
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }

// set of strings.
type set map[string]struct{}

func (s *set) add(value string) {
	if *s == nil {
		*s = set{}
	}
	(*s)[value] = struct{}{}
}

func (s set) all() iter.Seq[string] { return maps.Keys(s) }
