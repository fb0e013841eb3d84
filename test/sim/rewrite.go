package sim

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// rewrite makes an edit of a spec.
func rewrite(s *tappv1.TAppSpec, e Edit) {
	id := strconv.Itoa(e.A % max(fewReplicas, int(ptr.Deref(s.Replicas, 0))))
	switch e.Kind {
	case "image":
		templateOf(s, e.B).Spec.Containers[0].Image = images()[e.A%len(images())]
	case "spoil":
		templateOf(s, e.B).Spec.Containers[0].Image = spoilt()[e.A%len(spoilt())]
	case "env":
		templateOf(s, e.B).Spec.Containers[0].Env = []corev1.EnvVar{{Name: "X", Value: strconv.Itoa(e.A % 3)}}
	case "resources":
		templateOf(s, e.B).Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(int64(100+e.A%3*50), resource.DecimalSI)}
		s.UpdateStrategy.InPlaceUpdate.Resources = true
	case "label":
		templateOf(s, e.B).Labels["extra"] = strconv.Itoa(e.A % 3)
	case "checksum":
		t := templateOf(s, e.B)
		set(&t.Annotations, checksum, strconv.Itoa(e.A%3))
		if t != &s.Template {
			s.TemplatePool["other"] = *t
		}
	case "init":
		if init := templateOf(s, e.B).Spec.InitContainers; len(init) > 0 {
			init[0].Image = "init:v" + strconv.Itoa(1+e.A%3)
		}
	case "unlabel":
		delete(templateOf(s, e.B).Labels, "extra")
	case "scale":
		s.Replicas = ptr.To(int32(e.A % (fewReplicas + 1)))
	case "many":
		s.Replicas = many(e.A)
	case "nowhere":
		set(&s.Templates, id, "nowhere")
	case "emptied":
		delete(s.TemplatePool, "other")
	case "kill":
		set(&s.Statuses, id, tappv1.InstanceKilled)
	case "start":
		clear(s.Statuses)
	case "pool":
		set(&s.TemplatePool, "other", *s.Template.DeepCopy())
		templateOf(s, 1).Spec.Containers[0].Image = images()[e.B%len(images())]
		set(&s.Templates, id, "other")
	case "assign":
		if _, ok := s.TemplatePool["other"]; ok {
			set(&s.Templates, id, "other")
		}
		if e.B%3 == 0 {
			clear(s.Templates)
		}
	case "rolling":
		s.UpdateStrategy.Template = ""
		if _, ok := s.TemplatePool["other"]; ok && e.A%2 == 0 {
			s.UpdateStrategy.Template = "other"
		}
	default:
		rewriteStrategy(s, e)
	}
}

func rewriteStrategy(s *tappv1.TAppSpec, e Edit) {
	u := &s.UpdateStrategy
	switch e.Kind {
	case "pause":
		s.Paused = true
	case "resume":
		s.Paused = false
	case "budget":
		u.MaxUnavailable = budget(e.A)
	case "forced":
		u.ForceUpdate.MaxUnavailable = budget(e.A)
	case "policy":
		u.InPlaceUpdate.Policy = []tappv1.InPlaceUpdatePolicy{tappv1.InPlaceIfPossible, tappv1.InPlaceOnly, tappv1.ReCreate}[e.A%3]
	case "drain":
		u.InPlaceUpdate.Drain = ptr.To(e.A%2 == 0)
	case "retention":
		s.PersistentVolumeClaimRetentionPolicy = retention(e.A)
	case "grow":
		for i := range s.VolumeClaimTemplates {
			s.VolumeClaimTemplates[i].Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
		}
	case "force":
		s.ForceDeletePod = e.A%2 == 0
	case "autodelete":
		s.AutoDeleteUnusedTemplate = e.A%2 == 0
	case "limit":
		s.RevisionHistoryLimit = ptr.To(int32(e.A % 3))
	}
}

func templateOf(s *tappv1.TAppSpec, n int) *corev1.PodTemplateSpec {
	t := &s.Template
	name := ""
	if other, ok := s.TemplatePool["other"]; ok && n%2 == 1 {
		t, name = &other, "other"
	}
	t = t.DeepCopy()
	if name != "" {
		s.TemplatePool[name] = *t
		// A map's values cannot be pointed to; what a template points to is shared.
		return t
	}
	s.Template = *t
	return &s.Template
}

func set[V any](m *map[string]V, key string, value V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[key] = value
}
