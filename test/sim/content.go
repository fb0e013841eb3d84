package sim

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// wanted says why an instance must have no pod; nothing if it may.
func wanted(t *tappv1.TApp, id string) string {
	num, ok := number(id)
	switch {
	case !ok:
		return "it is no instance"
	case t.DeletionTimestamp != nil:
		return "the TApp is being deleted"
	case num >= int(*t.Spec.Replicas):
		return fmt.Sprintf("replicas are %d", *t.Spec.Replicas)
	case t.Spec.Statuses[id] == tappv1.InstanceKilled:
		return "it is killed"
	}
	return ""
}

func templateName(t *tappv1.TApp, id string) string {
	if name := t.Spec.Templates[id]; name != "" {
		return name
	}
	return t.Spec.DefaultTemplateName
}

// template of an instance; nil: there is none of that name.
func template(t *tappv1.TApp, id string) *corev1.PodTemplateSpec {
	name := templateName(t, id)
	if name == tappv1.DefaultTemplateName {
		return &t.Spec.Template
	}
	if out, ok := t.Spec.TemplatePool[name]; ok {
		return &out
	}
	return nil
}

// follows says whether a pod is what a template makes, as far as these tests change
// templates.
func follows(pod *corev1.Pod, t *corev1.PodTemplateSpec) bool {
	if t == nil {
		return false
	}
	own := slices.DeleteFunc(slices.Clone(pod.Spec.Containers), func(c corev1.Container) bool { return c.Name == proxy })
	if len(own) != len(t.Spec.Containers) {
		return false
	}
	for k, v := range t.Labels {
		if pod.Labels[k] != v {
			return false
		}
	}
	if _, has := t.Labels["extra"]; !has && pod.Labels["extra"] != "" {
		return false
	}
	for i, c := range t.Spec.Containers {
		p := own[i]
		if !isImage(p.Image, c.Image) || fmt.Sprint(p.Env) != fmt.Sprint(c.Env) || !isRight(&p) && p.Resources.Requests.Cpu().Cmp(*c.Resources.Requests.Cpu()) != 0 {
			return false
		}
	}
	for i, c := range t.Spec.InitContainers {
		if !isImage(pod.Spec.InitContainers[i].Image, c.Image) {
			return false
		}
	}
	return true
}
