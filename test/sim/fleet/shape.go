package fleet

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/effect"
	"tkestack.io/tapp/plan/podset"
)

// shape is what of a pod decides what becomes of it when its template changes: of what runs
// only images can change, labels and annotations can at any time.
type shape struct {
	kind, frame, images, labels string
}

func shapeOf(u *podset.Unit) shape {
	t := u.Content.Template
	if t == nil {
		return shape{kind: u.Content.DeployType}
	}
	text := func(v any) string {
		out, _ := json.Marshal(v)
		return string(out)
	}
	spec := t.Spec.DeepCopy()
	var images []string
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			images = append(images, list[i].Image)
			list[i].Image = ""
		}
	}
	return shape{u.Content.DeployType, text(spec), text(images), text([]any{t.Labels, t.Annotations})}
}

// to another shape: what becomes of the pod; empty: nothing.
func (s shape) to(other shape) effect.Effect {
	switch {
	case s == other:
		return ""
	case s.kind != v1beta1.DeployInPlaceSet || s.kind != other.kind || s.frame != other.frame:
		return effect.Recreate
	case s.images != other.images:
		return effect.UpdateInPlace
	}
	return effect.Relabel
}
