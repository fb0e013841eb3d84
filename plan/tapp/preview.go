package tapp

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/ids"
	"tkestack.io/tapp/plan/template"
)

// Effect is what a rollout does to an instance, from now to its end.
type Effect string

// The effects, in the order in which they are told of.
const (
	// EffectUpdateInPlace: the pod stays, and some of its containers restart.
	EffectUpdateInPlace Effect = "UpdateInPlace"
	// EffectRecreate: the pod is deleted, and another one created.
	EffectRecreate Effect = "Recreate"
	// EffectResize: the pod's resources change, nothing restarts.
	EffectResize Effect = "Resize"
	// EffectRelabel: the pod's labels and annotations change, nothing restarts.
	EffectRelabel Effect = "Relabel"
	// EffectKill: the pod goes because spec.statuses stops the instance.
	EffectKill Effect = "Kill"
	// EffectScaleDown: the pod goes because its id is out of range.
	EffectScaleDown Effect = "ScaleDown"
	// EffectCreate: the instance gets a pod.
	EffectCreate Effect = "Create"
	// EffectHold: the pod stays as it is although it does not follow its template.
	EffectHold Effect = "Hold"
)

// effectWords are the words for one instance and for several.
type effectWords struct {
	Effect    Effect
	one, many string
}

// effects in the order in which they are told of.
var effects = []effectWords{
	{EffectUpdateInPlace, "is updated in place", "are updated in place"},
	{EffectRecreate, "is recreated", "are recreated"},
	{EffectResize, "gets other resources without a restart", "get other resources without a restart"},
	{EffectRelabel, "gets other labels or annotations without a restart", "get other labels or annotations without a restart"},
	{EffectKill, "is killed", "are killed"},
	{EffectScaleDown, "is removed", "are removed"},
	{EffectCreate, "is created", "are created"},
	{EffectHold, "stays on its old template", "stay on their old template"},
}

// Change is one effect, for one reason, on the instances that share both.
type Change struct {
	Effect Effect
	// IDs of the instances, ascending.
	IDs []int
	// Why is the sentence that the actions will carry.
	Why string
}

// String is a sentence such as "2 instances are updated in place (0,2): image of
// web from web:1 to web:2".
func (c Change) String() string {
	return fmt.Sprintf("%s (%s): %s", c.Effect.Words(len(c.IDs)), ids.Ranges(c.IDs), c.Why)
}

// Words for the effect on a number of instances, such as "2 instances are recreated".
func (e Effect) Words(n int) string {
	noun, words := "instances", ""
	for _, known := range effects {
		if known.Effect == e {
			words = known.many
			if n == 1 {
				noun, words = "instance", known.one
			}
		}
	}
	return fmt.Sprintf("%d %s %s", n, noun, words)
}

// Preview tells what the rollout of a TApp does as a whole, where Compute tells
// its next step: budgets, pauses, delays and grace periods decide when something
// happens, not whether. Both carry out the same decision, intentOf. Only Input.TApp,
// Input.Pods and Input.Policy are looked at. Pods that are terminating, and completed
// instances, are left out. The changes come in the order of the effects, then of their
// first instance.
func Preview(in Input) []Change {
	in.Claims = nil
	s := readSpec(in)
	s.foresees = true
	if s.tapp.DeletionTimestamp != nil {
		return nil
	}
	type key struct {
		effect Effect
		why    string
	}
	index := map[key]int{}
	var out []Change
	for _, i := range observe(s, &clock{now: in.Now}, in, readClaims(s, nil)) {
		k := key{effect: s.effectOf(i)}
		switch k.effect {
		case "":
			continue
		case EffectResize: // what follows, of which the action under way may be the first step
			k.why = strings.Join(s.resizeOf(i).Changes, ", ")
		default:
			k.why = s.why(i)
		}
		at, ok := index[k]
		if !ok {
			at = len(out)
			index[k] = at
			out = append(out, Change{Effect: k.effect, Why: k.why})
		}
		out[at].IDs = append(out[at].IDs, i.id)
	}
	slices.SortStableFunc(out, func(a, b Change) int {
		return cmp.Or(cmp.Compare(rank(a.Effect), rank(b.Effect)), cmp.Compare(a.IDs[0], b.IDs[0]))
	})
	return out
}

func rank(e Effect) int {
	return slices.IndexFunc(effects, func(x effectWords) bool { return x.Effect == e })
}

// effectOf the intent of an instance; empty: nothing becomes of it.
func (s *spec) effectOf(i *instance) Effect {
	switch s.intentOf(i).kind {
	case create:
		return EffectCreate
	case scaleDown:
		return EffectScaleDown
	case stop:
		return EffectKill
	case replace, recreate:
		return EffectRecreate
	case relabel:
		if len(s.resourcesOf(i)) > 0 && !i.updated {
			return EffectResize
		}
		return EffectRelabel
	case updateInPlace, resizeAndRestart:
		return EffectUpdateInPlace
	case resize:
		return EffectResize
	case hold:
		return EffectHold
	}
	return ""
}

// PodOf returns the pod that a template makes for an instance, as it would be
// created, without the ownership, which needs a stored TApp. Hashes that are stamped
// into the template are taken as they are: this pod is tried, not compared. It is
// nil when there is no such template, or it has no hash.
func PodOf(t *tappv1.TApp, name string, id int) *corev1.Pod {
	s := &spec{tapp: defaulted(t)}
	spec := s.lookup(name)
	if spec == nil {
		return nil
	}
	hashes := template.Hashes{Template: spec.Labels[tappv1.LabelTemplateHash], Uniq: spec.Labels[tappv1.LabelUniqHash]}
	if !template.IsOurs(hashes.Template) || !template.IsOurs(hashes.Uniq) {
		var err error
		if hashes, err = template.Hash(spec); err != nil {
			return nil
		}
	}
	pod := s.podFor(&instance{id: id, name: strconv.Itoa(id), template: &podTemplate{
		Name: name, Spec: spec, Hashes: hashes, Record: template.MarshalRecord(spec),
		knownShape: hashes.Uniq, // an annotation less
	}})
	pod.OwnerReferences = nil
	return pod
}
