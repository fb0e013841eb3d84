package tapp

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/effect"
	"tkestack.io/tapp/plan/template"
)

// Preview tells what the rollout of a TApp does as a whole, where Compute tells
// its next step: budgets, pauses, delays and grace periods decide when something
// happens, not whether. Both carry out the same decision, intentOf. Only Input.TApp,
// Input.Pods and Input.Policy are looked at, and of Input.Claims those that are being
// deleted. Pods that are terminating, and completed
// instances, are left out. The changes come in the order of the effects, then of their
// first instance.
func Preview(in Input) []effect.Change {
	claims := Input{Claims: in.Claims}
	in.Claims = nil
	s := readSpec(in)
	s.foresees = true
	if s.tapp.DeletionTimestamp != nil {
		return nil
	}
	type key struct {
		effect effect.Effect
		why    string
	}
	index := map[key]int{}
	var out []effect.Change
	all := observe(s, &clock{now: in.Now}, in, readClaims(s, &in))
	followLosses(s, &in, nil, all)
	s.terminating = s.foreseen(&claims, all)
	for _, i := range all {
		k := key{effect: s.effectOf(i)}
		switch k.effect {
		case "":
			continue
		case effect.Resize: // what follows, of which the action under way may be the first step
			k.why = strings.Join(s.resizeOf(i).Changes, ", ")
		case effect.Wait:
			k.why = s.why(i) + "; but " + i.why
		default:
			k.why = s.why(i)
		}
		at, ok := index[k]
		if !ok {
			at = len(out)
			index[k] = at
			out = append(out, effect.Change{Effect: k.effect, Why: k.why})
		}
		out[at].IDs = append(out[at].IDs, i.id)
	}
	effect.Order(out)
	return out
}

// effectOf the intent of an instance; empty: nothing becomes of it.
func (s *spec) effectOf(i *instance) effect.Effect {
	switch s.intentOf(i).kind {
	case scaleDown, stop, replace, recreate:
		if s.keepsClaim(i) {
			return effect.Wait
		}
	}
	switch s.intentOf(i).kind {
	case create:
		return effect.Create
	case scaleDown:
		return effect.ScaleDown
	case stop:
		return effect.Kill
	case replace, recreate:
		return effect.Recreate
	case relabel:
		if len(s.resourcesOf(i)) > 0 && !i.updated {
			return effect.Resize
		}
		return effect.Relabel
	case updateInPlace, resizeAndRestart:
		return effect.UpdateInPlace
	case resize:
		return effect.Resize
	case hold:
		return effect.Hold
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
