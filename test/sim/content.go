package sim

import (
	"fmt"
	"slices"
	"strings"

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
	if t.Annotations[checksum] != pod.Annotations[checksum] {
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

// content of a pod or of a template, as far as these tests change templates, but for resources:
// while they change in place, a pod has the hash of a template that it does not follow yet.
type content string

func contentOfTemplate(t *corev1.PodTemplateSpec) content {
	return contentOf(t.Labels, t.Annotations, &t.Spec)
}

// contentOfPod is without what admission made of it; empty: there is none.
func contentOfPod(pod *corev1.Pod) content {
	if pod == nil {
		return ""
	}
	return contentOf(pod.Labels, pod.Annotations, &pod.Spec)
}

func contentOf(labels, annotations map[string]string, spec *corev1.PodSpec) content {
	var b strings.Builder
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for _, c := range list {
			if c.Name == proxy {
				continue
			}
			fmt.Fprintf(&b, "%s=%s", c.Name, strings.TrimPrefix(c.Image, mirror))
			for _, e := range c.Env {
				fmt.Fprintf(&b, ",%s=%.20s", e.Name, e.Value)
			}
			b.WriteString(" ")
		}
	}
	if labels[extraLabel] != "" {
		fmt.Fprintf(&b, "%s=%s ", extraLabel, labels[extraLabel])
	}
	if annotations[checksum] != "" {
		fmt.Fprintf(&b, "%s=%s ", checksum, annotations[checksum])
	}
	return content(strings.TrimSpace(b.String()))
}

// What edits of templates write beside the spec.
const (
	extraLabel = "extra"
	checksum   = "checksum/config"
)

func idsOf(t *tappv1.TApp) []string {
	var out []string
	for n := range int(*t.Spec.Replicas) {
		out = append(out, fmt.Sprint(n))
	}
	return out
}

func defaulted(t *tappv1.TApp) *tappv1.TApp {
	d := *t
	d.Spec = *t.Spec.DeepCopy()
	tappv1.Default(&d)
	return &d
}
