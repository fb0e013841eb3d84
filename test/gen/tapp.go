// Package gen builds TApps for tests: TApp gives a small one that works, and
// options change what a test is about.
package gen

import (
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// Option changes a TApp.
type Option func(*tappv1.TApp)

// Edit changes a pod template.
type Edit func(*corev1.PodTemplateSpec)

// TApp returns a TApp of three instances, whose only template has one container
// named main that runs demo:v1.
func TApp(name string, opts ...Option) *tappv1.TApp {
	t := &tappv1.TApp{ObjectMeta: metav1.ObjectMeta{Name: name}}
	Replicas(3)(t)
	t.Spec.Template = Template(name, "demo:v1")
	for _, o := range opts {
		o(t)
	}
	return t
}

// Template returns a pod template with the label app=<app> and one container
// named main.
func Template(app, image string, edits ...Edit) corev1.PodTemplateSpec {
	t := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Image: image}},
		},
	}
	for _, e := range edits {
		e(&t)
	}
	return t
}

// Replicas sets the number of instances.
func Replicas(n int32) Option {
	return func(t *tappv1.TApp) { t.Spec.Replicas = &n }
}

// Default edits the template named default.
func Default(edits ...Edit) Option {
	return func(t *tappv1.TApp) {
		for _, e := range edits {
			e(&t.Spec.Template)
		}
	}
}

// Pool adds a copy of the default template, edited, under a name.
func Pool(name string, edits ...Edit) Option {
	return func(t *tappv1.TApp) {
		own := t.Spec.Template.DeepCopy()
		for _, e := range edits {
			e(own)
		}
		pool := maps.Clone(t.Spec.TemplatePool)
		if pool == nil {
			pool = map[string]corev1.PodTemplateSpec{}
		}
		pool[name] = *own
		t.Spec.TemplatePool = pool
	}
}

// Use gives instances a template of the pool.
func Use(template string, ids ...int) Option {
	return func(t *tappv1.TApp) {
		if t.Spec.Templates == nil {
			t.Spec.Templates = map[string]string{}
		}
		for _, id := range ids {
			t.Spec.Templates[strconv.Itoa(id)] = template
		}
	}
}

// Killed stops instances.
func Killed(ids ...int) Option {
	return func(t *tappv1.TApp) {
		if t.Spec.Statuses == nil {
			t.Spec.Statuses = map[string]tappv1.InstanceStatus{}
		}
		for _, id := range ids {
			t.Spec.Statuses[strconv.Itoa(id)] = tappv1.InstanceKilled
		}
	}
}

// MaxUnavailable sets the budget of rolling updates: "2" or "30%".
func MaxUnavailable(budget string) Option {
	return func(t *tappv1.TApp) {
		b := intstr.Parse(budget)
		t.Spec.UpdateStrategy.MaxUnavailable = &b
	}
}

// ForceMaxUnavailable sets the budget of forced updates.
func ForceMaxUnavailable(budget string) Option {
	return func(t *tappv1.TApp) {
		b := intstr.Parse(budget)
		t.Spec.UpdateStrategy.ForceUpdate.MaxUnavailable = &b
	}
}

// Policy sets when pods are changed in place.
func Policy(p tappv1.InPlaceUpdatePolicy) Option {
	return func(t *tappv1.TApp) { t.Spec.UpdateStrategy.InPlaceUpdate.Policy = p }
}

// NoDrain leaves pods in their Services while they change in place.
func NoDrain() Option {
	return func(t *tappv1.TApp) {
		drain := false
		t.Spec.UpdateStrategy.InPlaceUpdate.Drain = &drain
	}
}

// Image sets the image of the container main.
func Image(image string) Edit { return ContainerImage("main", image) }

// ContainerImage sets the image of a container.
func ContainerImage(container, image string) Edit {
	return func(t *corev1.PodTemplateSpec) {
		for i := range t.Spec.Containers {
			if t.Spec.Containers[i].Name == container {
				t.Spec.Containers[i].Image = image
			}
		}
	}
}

// Container adds a container.
func Container(c corev1.Container) Edit {
	return func(t *corev1.PodTemplateSpec) { t.Spec.Containers = append(t.Spec.Containers, c) }
}

// Env sets a variable of the first container.
func Env(name, value string) Edit {
	return func(t *corev1.PodTemplateSpec) {
		env := &t.Spec.Containers[0].Env
		for i := range *env {
			if (*env)[i].Name == name {
				(*env)[i].Value = value
				return
			}
		}
		*env = append(*env, corev1.EnvVar{Name: name, Value: value})
	}
}

// Label sets a label of the pods.
func Label(key, value string) Edit {
	return func(t *corev1.PodTemplateSpec) { t.Labels[key] = value }
}

// Annotation sets an annotation of the pods.
func Annotation(key, value string) Edit {
	return func(t *corev1.PodTemplateSpec) {
		if t.Annotations == nil {
			t.Annotations = map[string]string{}
		}
		t.Annotations[key] = value
	}
}

// RestartPolicy sets the pods' restart policy.
func RestartPolicy(p corev1.RestartPolicy) Edit {
	return func(t *corev1.PodTemplateSpec) { t.Spec.RestartPolicy = p }
}

// Probe has the first container be ready when the demo server says so, and not ready when it
// says so for a while: a machine that is busy answers late.
func Probe() Edit {
	return func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
			PeriodSeconds: 1, TimeoutSeconds: 10, FailureThreshold: 3,
			ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
				Path: "/readyz", Port: intstr.FromInt32(DemoPort),
			}},
		}
	}
}

// DemoPort is where the demo images listen.
const DemoPort = 8080

// Simulated has the pods run on simulated nodes only.
func Simulated() Edit {
	return func(t *corev1.PodTemplateSpec) {
		t.Spec.NodeSelector = map[string]string{"type": "kwok"}
		t.Spec.Tolerations = []corev1.Toleration{{Key: "kwok.x-k8s.io/node", Operator: corev1.TolerationOpExists}}
	}
}
