package app

import (
	"encoding/json"
	"slices"
	"strconv"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appv1 "tkestack.io/tapp/crd/app/v1"
	"tkestack.io/tapp/test/sim/apiserver"
)

// appNames of a run. Both Apps take the names of their children from one list.
func appNames() []string { return []string{"web", "api"} }

func childNames() []string { return []string{"web", "api", "third"} }

// draft is an App as a user creates it.
func draft(name string) *appv1.App {
	a := &appv1.App{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	a.Spec.DeploymentTemplate = appv1.DeploymentTemplate{Name: name, Image: "demo:v1", Replicas: ptr.To[int32](2),
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 80, Protocol: corev1.ProtocolTCP}},
		Env:   []corev1.EnvVar{{Name: "EMPTY"}, {Name: "FULL", Value: "1"}}}
	a.Spec.ServiceTemplate = appv1.ServiceTemplate{Name: name, Port: 8080, Type: corev1.ServiceTypeClusterIP}
	return a
}

// strike is what happens at a step of the plan.
func (w *world) strike(e Event) {
	w.say("event: %s", e)
	name := appNames()[e.A%len(appNames())]
	key := namespace + "/" + name
	switch {
	case slices.Contains(writeFaults(), e.Kind):
		w.armed = append(w.armed, e.Kind)
	case e.Kind == freeze:
		w.frozen = w.steps + 10 + e.A
	case e.Kind == expire:
		for _, x := range w.watches {
			x.Expire()
			synctest.Wait() // clients draw how long they wait: one after the other
		}
	case e.Kind == takesOver:
		for _, r := range w.alive() {
			w.kill(r)
		}
		_ = w.start()
	case e.Kind == create:
		_, _ = w.Create(apps, draft(name), w.as("user"))
	case e.Kind == remove:
		policy := []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationOrphan}[e.B%2]
		_, _ = w.Remove(apps, key, metav1.DeleteOptions{PropagationPolicy: &policy}, w.as("user"))
	case slices.Contains([]string{image, replicas, env, port, rename, unname}, e.Kind):
		_, _ = w.Update(apps, key, "", w.as("user"), func(o object) error { rewrite(&o.(*appv1.App).Spec, e); return nil })
	default:
		w.meddle(e)
	}
}

func rewrite(s *appv1.AppSpec, e Event) {
	d := &s.DeploymentTemplate
	switch e.Kind {
	case image:
		d.Image = "demo:v" + strconv.Itoa(e.B%4)
	case replicas:
		d.Replicas = ptr.To(int32(e.B % 4))
	case env:
		d.Env = [][]corev1.EnvVar{{{Name: "EMPTY"}, {Name: "FULL", Value: "2"}}, {{Name: "FULL", Value: "1"}}, {{Name: "EMPTY", Value: "no"}}, nil}[e.B%4]
	case port:
		s.ServiceTemplate.Port = int32(8080 + e.B%3)
		d.Ports[0].ContainerPort = int32(80 + e.B%2)
	case rename:
		name := childNames()[e.B%len(childNames())]
		if e.B%2 == 0 {
			d.Name = name
		}
		s.ServiceTemplate.Name = name
	case unname:
		s.ServiceTemplate.Name = ""
	}
}

// meddle is what others do to a child of an App, as kubectl edit or server-side apply does.
func (w *world) meddle(e Event) {
	name := childNames()[e.A%len(childNames())]
	key := namespace + "/" + name
	service := func(edit func(*corev1.Service)) {
		_, _ = w.Update(services, key, "", w.as("kubectl-edit"), func(o object) error { edit(o.(*corev1.Service)); return nil })
	}
	deployment := func(edit func(*appsv1.Deployment)) {
		_, _ = w.Update(deployments, key, "", w.as("kubectl-edit"), func(o object) error { edit(o.(*appsv1.Deployment)); return nil })
	}
	switch e.Kind {
	case editPort:
		service(func(s *corev1.Service) {
			for i := range s.Spec.Ports {
				if s.Spec.Ports[i].Name == appv1.PortName {
					s.Spec.Ports[i].Port = int32(7000 + e.B%3)
				}
			}
		})
	case extraKey:
		service(func(s *corev1.Service) {
			s.Spec.Selector = map[string]string{appv1.LabelApp: s.Spec.Selector[appv1.LabelApp], "extra": "1"}
		})
	case emptied:
		deployment(func(d *appsv1.Deployment) {
			for i := range d.Spec.Template.Spec.Containers[0].Env {
				d.Spec.Template.Spec.Containers[0].Env[i].Value = []string{"", "other"}[e.B%2]
			}
		})
	case rescaled:
		deployment(func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To(int32(5)) })
	case childDeleted:
		_, _ = w.Remove([]string{deployments, services}[e.B%2], key, metav1.DeleteOptions{}, w.as("somebody"))
	case takesName:
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
		_, _ = w.Create(services, s, w.as("somebody"))
	case addsFields:
		w.addFields(key, name, e.B)
	}
}

// sidecar is what another program adds by server-side apply.
const (
	sidecar = "sidecar"
	note    = "example.com/note"
	extra   = "EXTRA"
	metrics = "metrics"
)

// addFields sets what the App says nothing of.
func (w *world) addFields(key, name string, how int) {
	switch how % 4 {
	case 0:
		_, _ = w.Update(services, key, "", w.as("kubectl-edit"), func(o object) error {
			s := o.(*corev1.Service)
			s.Annotations, s.Spec.SessionAffinity = map[string]string{appv1.AnnotationApplied: s.Annotations[appv1.AnnotationApplied], note: "1"}, corev1.ServiceAffinityClientIP
			return nil
		})
	case 1:
		_, _ = w.Update(deployments, key, "", w.as("kubectl-edit"), func(o object) error {
			t := &o.(*appsv1.Deployment).Spec.Template
			t.Annotations = map[string]string{note: "1"}
			if c := &t.Spec.Containers[0]; !slices.ContainsFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == extra }) {
				c.Env = append(c.Env, corev1.EnvVar{Name: extra, Value: "1"})
			}
			return nil
		})
	case 2:
		w.apply(deployments, key, "mesh", map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": name, "namespace": namespace},
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": sidecar, "image": "mesh:v1"}}}}}})
	case 3:
		w.apply(services, key, "mesh", map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": name, "namespace": namespace},
			"spec": map[string]any{"ports": []any{map[string]any{"name": metrics, "port": 9090, "protocol": "TCP"}}}})
	}
}

// apply to an object that exists.
func (w *world) apply(resource, key, manager string, config map[string]any) {
	o := w.Get(resource, key)
	body, err := json.Marshal(config)
	if o == nil || err != nil {
		return
	}
	_, _ = w.Apply(&apiserver.Request{Verb: "patch", Resource: resource, Namespace: namespace, Name: o.GetName(), Body: body,
		Query: map[string][]string{"fieldManager": {manager}}}, w.as(manager))
}
