package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"tkestack.io/tapp/plan/inplace"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
)

// violation of what must hold.
type violation struct{ rule, why string }

func (v violation) Error() string { return v.rule + ": " + v.why }

func breaks(rule, format string, args ...any) error {
	return violation{rule, fmt.Sprintf(format, args...)}
}

// move is one write of the shell and what may come of it, beside nothing: the
// first is that it succeeds.
type move struct {
	num int // the instance; -1: the TApp
	*plan.Action
	to []pod
	// status is what is remembered of each instance when it is stored.
	status []instance
}

func (m *move) String() string {
	if m.num < 0 {
		return "the status is stored"
	}
	return fmt.Sprintf("%s %d (%s)", m.Op, m.num, m.Reason)
}

// moves are the writes of a plan.
func (w *world) moves(s *state, p *plan.Plan) ([]move, error) {
	var out []move
	if len(p.History) > 0 {
		return nil, breaks("L1", "%s although the revision is recorded", p.History[0].Op)
	}
	for k := range p.Actions {
		a := &p.Actions[k]
		num, err := strconv.Atoi(a.ID)
		if err != nil || num < 0 || num >= w.Instances {
			return nil, breaks("S1", "%s of instance %q", a.Op, a.ID)
		}
		to, err := w.effects(num, s[num].pod, a)
		if err != nil {
			return nil, err
		}
		for _, next := range to {
			i := s[num]
			if i.pod = next; w.same(i, s[num]) {
				return nil, breaks("L1", "%s of instance %d (%s) changes nothing", a.Op, num, a.Reason)
			}
		}
		out = append(out, move{num: num, Action: a, to: to})
	}
	if m := w.statusMove(s, p); m != nil {
		out = append(out, *m)
	}
	return out, nil
}

func (w *world) same(a, b instance) bool {
	w.canonical(&a)
	w.canonical(&b)
	return a == b
}

// statusMove is the write of the status, if what is remembered changes by it.
func (w *world) statusMove(s *state, p *plan.Plan) *move {
	m := move{num: -1}
	evidence := meta.FindStatusCondition(p.Status.Conditions, tappv1.ConditionForceDeleted)
	changed := false
	for num := range w.Instances {
		i := s[num]
		switch p.Status.Statuses[strconv.Itoa(num)] {
		case tappv1.InstanceSucc:
			i.stored = succeeded
		case tappv1.InstanceFailed:
			i.stored = failed
		default:
			i.stored = noEnd
		}
		i.told = evidence != nil && evidence.Status == metav1.ConditionTrue && strings.Contains(evidence.Message, words(num)) && i.pod.place == dying
		changed = changed || i != s[num]
		m.status = append(m.status, i)
	}
	if !changed {
		return nil
	}
	return &m
}

// effects of an action on the pod: of all of it, and of a part where it takes two
// writes. What the API server or an oracle would refuse is a violation.
func (w *world) effects(num int, p pod, a *plan.Action) ([]pod, error) {
	gone := pod{}
	removed := pod{place: dying}
	if p.place == pending || p.place == ended {
		removed = gone
	}
	if a.Op != plan.OpCreate {
		if p.place == none {
			return nil, breaks("S1", "%s of instance %d, which has no pod", a.Op, num)
		}
		if a.UID() != uidOf(num) {
			return nil, breaks("S7", "%s of instance %d is about the pod %q", a.Op, num, a.UID())
		}
	}
	switch a.Op {
	case plan.OpCreate, plan.OpReplace:
		made, half, err := w.born(num, a)
		switch {
		case err != nil:
			return nil, err
		case a.Op == plan.OpReplace:
			return []pod{made, half, gone}, nil
		case made == half:
			return []pod{made}, nil
		}
		return []pod{made, half}, nil
	case plan.OpDelete:
		removed.forUpdate = a.ForUpdate
		return []pod{removed}, nil
	case plan.OpForceDelete:
		return []pod{gone}, nil
	case plan.OpAdopt:
		p.orphan = false
		return []pod{p}, nil
	case plan.OpDrain, plan.OpUndrain:
		return w.patched(num, p, a, a.Status)
	case plan.OpUpdateInPlace, plan.OpRelabel:
		return w.patched(num, p, a, a.Patch)
	}
	return nil, breaks("S7", "%s of instance %d, which is no action for this TApp", a.Op, num)
}

// late is what comes of a write that is made one step after it was planned; false
// where it comes to nothing: the pod is another one, or about to be.
func (w *world) late(m *move, after step) (pod, bool, error) {
	p := after.to.pod
	same := p.place == pending || p.place == running || m.Op == plan.OpDelete && p.place == ended
	if !same || p.orphan || m.Op == plan.OpCreate || m.Op == plan.OpReplace {
		return pod{}, false, nil
	}
	to, err := w.effects(m.num, p, m.Action)
	if err != nil {
		return pod{}, false, err
	}
	next := to[0]
	if after.starts && next.record != p.record { // which names the container before
		if next.record.container == lastContainer {
			next.record.container = olderContainer
		}
		if next.record.starts++; next.record.container == noContainer {
			next.record.starts = 1 // the plan saw none
		}
		next.record.starts = min(next.record.starts, maxStarts)
	}
	return next, true, nil
}

// born reads the pod that is created, with and without its second write. While its update
// is held it may have a former version, and says so. That mark is not followed further: what
// it keeps from happening depends on time, see plan/kept.
func (w *world) born(num int, a *plan.Action) (made, half pod, err error) {
	hash := a.Pod.Labels[tappv1.LabelTemplateHash]
	version, known := w.hashes[hash]
	id, kept := strconv.Itoa(num), a.Pod.Annotations[tappv1.AnnotationKept]
	if !known || version == 0 && kept != "" || version != 0 && kept != hash || a.Pod.Name != "web-"+id || a.Pod.Labels[tappv1.LabelInstanceID] != id || a.Pod.Spec.Containers[0].Image != image(version) {
		return pod{}, pod{}, breaks("S6", "instance %d gets pod %s of version %d", num, a.Pod.Name, version)
	}
	if inplace.HasGate(a.Pod) != w.Gated || w.Gated != (a.Status != nil) {
		return pod{}, pod{}, breaks("S5", "the pod of instance %d has a gate: %t, which is opened: %t", num, inplace.HasGate(a.Pod), a.Status != nil)
	}
	made = pod{place: pending, version: version}
	half = made
	if w.Gated {
		made.gate, half.gate = open, unset
	}
	return made, half, nil
}

type patchKey struct {
	num   int
	pod   pod
	patch string
}

// patched applies the patch as the API server does, and reads what came of it.
func (w *world) patched(num int, p pod, a *plan.Action, patch []byte) ([]pod, error) {
	key := patchKey{num, p, string(patch)}
	if next, ok := w.patches[key]; ok {
		return []pod{next}, nil
	}
	old := w.concrete(num, p)
	before, err := json.Marshal(old)
	if err != nil {
		return nil, err
	}
	after, err := strategicpatch.StrategicMergePatch(before, patch, &corev1.Pod{})
	if err != nil {
		return nil, breaks("S7", "%s of instance %d is no patch: %v", a.Op, num, err)
	}
	var now corev1.Pod
	if err := json.Unmarshal(after, &now); err != nil {
		return nil, breaks("S7", "%s of instance %d makes no pod: %v", a.Op, num, err)
	}
	if !strings.Contains(string(patch), `"uid":"`+string(uidOf(num))+`"`) || now.UID != old.UID {
		return nil, breaks("S7", "%s of instance %d is not conditional on the UID", a.Op, num)
	}
	next := p
	if next.version = w.hashes[now.Labels[tappv1.LabelTemplateHash]]; now.Spec.Containers[0].Image != image(next.version) {
		return nil, breaks("S6", "instance %d gets image %s, and the hash of %s", num, now.Spec.Containers[0].Image, image(next.version))
	}
	if next.gate != ungated {
		switch since, is := inplace.GateClosedSince(&now); {
		case is && since.IsZero():
			return nil, breaks("S5", "the gate of instance %d has no time", num)
		case is:
			next.gate = closed
		case inplace.GateOpen(&now):
			next.gate = open
		}
	}
	if now.Spec.Containers[0].Image != old.Spec.Containers[0].Image {
		next.seen = false // a new generation
	}
	next.record = w.readRecord(&now, next)
	w.patches[key] = next
	return []pod{next}, nil
}
