package tapp

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/inplace"
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
	// EffectScaleDown: the pod goes because its id is not below replicas.
	EffectScaleDown Effect = "ScaleDown"
	// EffectCreate: the instance gets a pod.
	EffectCreate Effect = "Create"
	// EffectHold: the pod stays as it is although it does not follow its template.
	EffectHold Effect = "Hold"
)

// effects in the order in which they are told of, with the words for one
// instance and for several.
var effects = []struct {
	Effect    Effect
	one, many string
}{
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
	noun, words := "instances", ""
	for _, e := range effects {
		if e.Effect == c.Effect {
			words = e.many
			if len(c.IDs) == 1 {
				noun, words = "instance", e.one
			}
		}
	}
	return fmt.Sprintf("%d %s %s (%s): %s", len(c.IDs), noun, words, Ranges(c.IDs), c.Why)
}

// Preview tells what the rollout of a TApp does as a whole, where Compute tells
// its next step: budgets, pauses and grace periods decide when something happens,
// not whether. Only Input.TApp and Input.Pods are looked at. Pods that are being
// deleted, and ends that the spec does not cause, are left out. The changes come
// in the order of the effects, then of their first instance.
func Preview(in Input) []Change {
	d := decision{in: in, tapp: defaulted(in.TApp)}
	d.readSpec()
	d.observe()
	if d.tapp.DeletionTimestamp != nil {
		return nil
	}
	type key struct {
		effect Effect
		why    string
	}
	index := map[key]int{}
	seen := map[origin]Change{}
	var out []Change
	for _, i := range d.instances {
		effect, why := d.foresee(i, seen)
		if effect == "" {
			continue
		}
		k := key{effect, why}
		at, ok := index[k]
		if !ok {
			at = len(out)
			index[k] = at
			out = append(out, Change{Effect: effect, Why: why})
		}
		out[at].IDs = append(out[at].IDs, i.num)
	}
	slices.SortStableFunc(out, func(a, b Change) int {
		return cmp.Or(cmp.Compare(rank(a.Effect), rank(b.Effect)), cmp.Compare(a.IDs[0], b.IDs[0]))
	})
	return out
}

func rank(e Effect) int {
	for n := range effects {
		if effects[n].Effect == e {
			return n
		}
	}
	return len(effects)
}

// foresee tells what becomes of an instance; no effect: nothing.
func (d *decision) foresee(i *instance, seen map[origin]Change) (Effect, string) {
	switch {
	case i.state == missing && i.running() && i.template != nil:
		return EffectCreate, "the instance has no pod"
	case i.state != alive && i.state != finished:
		return "", ""
	case !i.wanted:
		return EffectScaleDown, d.whyScaledDown()
	case i.stopped:
		return EffectKill, whyKilled
	case i.state == finished || i.template == nil:
		return "", ""
	}
	if _, why := d.remade(i); why != "" {
		return EffectRecreate, why
	}
	// Pods with a hash of ours were made from one template, so that what holds for
	// one of them holds for all: in thousands of pods that is most of the time.
	key := origin{to: i.templateName, from: i.pod.Labels[tappv1.LabelTemplateHash], uniq: i.pod.Labels[tappv1.LabelUniqHash], id: i.pod.Labels[tappv1.LabelInstanceID] == i.id}
	if known, ok := seen[key]; ok {
		return known.Effect, known.Why
	}
	effect, why := d.foreseeUpdate(i)
	if template.IsOurs(key.from) {
		seen[key] = Change{Effect: effect, Why: why}
	}
	return effect, why
}

// origin is what decides how a pod gets to its template.
type origin struct {
	to, from, uniq string
	id             bool
}

// foreseeUpdate tells how a running pod gets to its template.
func (d *decision) foreseeUpdate(i *instance) (Effect, string) {
	switch c := d.changeOf(i); c {
	case relabel:
		if _, resources := d.wantedOf(i); len(resources) > 0 {
			return EffectResize, strings.Join(resources, ", ")
		}
		return EffectRelabel, whyRelabel(i, c, nil)
	case inPlace:
		if _, _, err := inplace.Patch(i.pod, d.podFor(i), i.template.Hashes, d.in.Now); err != nil {
			return d.foreseeRecreate(err.Error())
		}
		_, resources := d.wantedOf(i)
		return EffectUpdateInPlace, strings.Join(append(template.ImageChanges(i.pod, i.template.Spec), resources...), ", ")
	case resize:
		return EffectResize, strings.Join(inplace.ResizeTo(i.pod, i.template.Spec).Changes, ", ")
	case resizeAndRestart:
		return EffectUpdateInPlace, strings.Join(inplace.ResizeTo(i.pod, i.template.Spec).Changes, ", ")
	case recreate:
		return d.foreseeRecreate(d.whyRecreate(i))
	}
	return "", ""
}

func (d *decision) foreseeRecreate(why string) (Effect, string) {
	if d.tapp.Spec.UpdateStrategy.InPlaceUpdate.Policy == tappv1.InPlaceOnly {
		return EffectHold, why + "; spec.updateStrategy.inPlaceUpdate.policy is InPlaceOnly"
	}
	return EffectRecreate, why
}

// PodOf returns the pod that a template makes for an instance, as it would be
// created, without the ownership, which needs a stored TApp. Hashes that are stamped
// into the template are taken as they are: this pod is tried, not compared. It is
// nil when there is no such template, or it has no hash.
func PodOf(t *tappv1.TApp, name string, id int) *corev1.Pod {
	d := decision{tapp: defaulted(t)}
	spec := d.lookup(name)
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
	pod := d.podFor(&instance{id: strconv.Itoa(id), num: id, template: &podTemplate{
		Name: name, Spec: spec, Hashes: hashes, Keys: template.MarshalKeys(spec),
		known: hashes.Uniq, // an annotation less
	}})
	pod.OwnerReferences = nil
	return pod
}
