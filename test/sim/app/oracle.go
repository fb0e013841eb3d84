package app

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	appv1 "tkestack.io/tapp/crd/app/v1"
	"tkestack.io/tapp/test/sim/apiserver"
)

// judge is told of every step of every object, and finds what the controller must not do:
//
//	A1  it touches no child that another controls, or that no App of its name left behind
//	A2  what others have set, and the App says nothing of, stays
//	A3  it deletes no child that its App has named all the time
//
// A4 and A5, which hold at rest, are in atRest and calm.
func (w *world) judge(c *apiserver.Change) error {
	if _, ours := c.Cause.(*request); !ours || c.Before == nil || c.Resource != deployments && c.Resource != services {
		return nil
	}
	name := apiserver.NameOf(c.Resource, c.Before)
	label := c.Before.GetLabels()[appv1.LabelApp]
	owner := apiserver.ControllerOf(c.Before)
	app, _ := apiserver.Find[*appv1.App](w.Store, apps, namespace+"/"+label)
	switch {
	case owner == "" && (app == nil || c.After == nil):
		return fmt.Errorf("A1: %s is touched, and no App of its name left it behind", name)
	case owner != "" && !w.wasApp(string(owner)):
		return fmt.Errorf("A1: %s of another owner is touched", name)
	case owner != "" && c.After != nil && apiserver.ControllerOf(c.After) != owner:
		return fmt.Errorf("A1: %s is taken from its App", name)
	case c.After == nil && w.alwaysNamed(c.Resource, c.Before):
		return fmt.Errorf("A3: %s is deleted, and its App has named it all the time", name)
	case c.After == nil:
		return nil
	}
	for _, mark := range marksOf(c.Before) {
		if !slices.Contains(marksOf(c.After), mark) {
			return fmt.Errorf("A2: %s loses its %s, which is not the App's", name, mark)
		}
	}
	return nil
}

func (w *world) wasApp(uid string) bool {
	return slices.ContainsFunc(w.Tables[apps].History, func(c *apiserver.Change) bool { return string(c.Object().GetUID()) == uid })
}

// alwaysNamed says whether the App of a child has named it in all of its versions.
func (w *world) alwaysNamed(resource string, o object) bool {
	for _, c := range w.Tables[apps].History {
		a := c.Object().(*appv1.App)
		if a.UID == apiserver.ControllerOf(o) && nameOf(a, resource) != o.GetName() {
			return false
		}
	}
	return true
}

func nameOf(a *appv1.App, resource string) string {
	if resource == deployments {
		return a.Spec.DeploymentTemplate.Name
	}
	return a.Spec.ServiceTemplate.Name
}

// marksOf a child: what others have set.
func marksOf(o object) (out []string) {
	mark := func(is bool, what string) {
		if is {
			out = append(out, what)
		}
	}
	switch o := o.(type) {
	case *corev1.Service:
		mark(o.Annotations[note] != "", "annotation")
		mark(o.Spec.SessionAffinity == corev1.ServiceAffinityClientIP, "session affinity")
		mark(slices.ContainsFunc(o.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == metrics }), "port "+metrics)
	case *appsv1.Deployment:
		s := &o.Spec.Template.Spec
		mark(o.Spec.Template.Annotations[note] != "", "annotation of the template")
		mark(slices.ContainsFunc(s.Containers, func(c corev1.Container) bool { return c.Name == sidecar }), "container "+sidecar)
		mark(slices.ContainsFunc(s.Containers, func(c corev1.Container) bool {
			return slices.ContainsFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == extra })
		}), "variable "+extra)
	}
	return out
}

// atRest is A4: each App has the children that it says, and no others, or says why not.
func (w *world) atRest() error {
	for _, a := range apiserver.All[*appv1.App](w.Store, apps) {
		if err := w.settled(a); err != nil {
			return fmt.Errorf("A4: at rest, and App %s is not as it should be: %w", a.Name, err)
		}
	}
	return nil
}

func (w *world) settled(a *appv1.App) error {
	taken := false
	for _, resource := range []string{deployments, services} {
		for _, key := range w.Tables[resource].Keys() {
			o := w.Tables[resource].Objects[key]
			ours := apiserver.ControllerOf(o) == a.UID
			switch named := nameOf(a, resource) == o.GetName(); {
			case named && !ours:
				taken = true
			case ours && !named && !w.isTaken(a, resource):
				return fmt.Errorf("it has %s, and does not name it", apiserver.NameOf(resource, o))
			}
		}
		if name := nameOf(a, resource); name != "" && w.Get(resource, namespace+"/"+name) == nil {
			return fmt.Errorf("it lacks %s %s", resource, name)
		}
	}
	if err := w.same(a); err != nil {
		return err
	}
	stalled := meta.FindStatusCondition(a.Status.Conditions, appv1.ConditionStalled)
	switch {
	case a.Status.ObservedGeneration != a.Generation:
		return fmt.Errorf("observedGeneration is %d of %d", a.Status.ObservedGeneration, a.Generation)
	case taken && (stalled == nil || stalled.Reason != appv1.ReasonResourceExists || !strings.Contains(stalled.Message, "already exists")):
		return fmt.Errorf("the name of a child is taken, and the status does not say so: %v", stalled)
	case !taken && !meta.IsStatusConditionTrue(a.Status.Conditions, appv1.ConditionReady):
		return fmt.Errorf("the condition Ready is not True: %v", a.Status.Conditions)
	}
	return nil
}

func (w *world) isTaken(a *appv1.App, resource string) bool {
	o := w.Get(resource, namespace+"/"+nameOf(a, resource))
	return o != nil && apiserver.ControllerOf(o) != a.UID
}

// same compares the children that are the App's with what it says, field by field.
func (w *world) same(a *appv1.App) error {
	var wrong []string
	note := func(bad bool, what string) {
		if bad {
			wrong = append(wrong, what)
		}
	}
	t := &a.Spec.DeploymentTemplate
	if d, ok := apiserver.Find[*appsv1.Deployment](w.Store, deployments, namespace+"/"+t.Name); ok && apiserver.ControllerOf(d) == a.UID {
		i := slices.IndexFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool { return c.Name == appv1.ContainerName })
		if i < 0 {
			return fmt.Errorf("the Deployment lacks the container")
		}
		c := &d.Spec.Template.Spec.Containers[i]
		note(c.Image != t.Image, "image")
		note(ptr.Deref(d.Spec.Replicas, 1) != *t.Replicas, "replicas")
		note(len(c.Ports) != 1 || c.Ports[0].ContainerPort != t.Ports[0].ContainerPort, "ports of the container")
		has, wants := map[string]string{}, map[string]string{}
		for _, v := range c.Env {
			has[v.Name] = v.Value
		}
		for _, v := range t.Env {
			wants[v.Name] = v.Value
			note(has[v.Name] != v.Value, "variable "+v.Name)
		}
	}
	if s, ok := apiserver.Find[*corev1.Service](w.Store, services, namespace+"/"+a.Spec.ServiceTemplate.Name); ok && apiserver.ControllerOf(s) == a.UID {
		own := slices.DeleteFunc(slices.Clone(s.Spec.Ports), func(p corev1.ServicePort) bool { return p.Name == metrics })
		note(len(own) != 1 || own[0].Port != a.Spec.ServiceTemplate.Port || own[0].TargetPort.IntVal != t.Ports[0].ContainerPort, "ports of the Service")
		note(!maps.Equal(s.Spec.Selector, map[string]string{appv1.LabelApp: a.Name}), "selector")
	}
	if len(wrong) > 0 {
		return fmt.Errorf("its children differ in: %s", strings.Join(wrong, ", "))
	}
	return nil
}
