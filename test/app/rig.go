//go:build cluster

// Package app tests the kind App against a real API server and the controllers of
// Kubernetes. The App controller runs in the test's process, for the Apps of one
// namespace, has the rights that the chart gives and no others, and is watched by
// the audit log.
package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"tkestack.io/tapp/controller"
	appv1 "tkestack.io/tapp/crd/app/v1"
	"tkestack.io/tapp/test/audit"
	"tkestack.io/tapp/test/cluster"
)

// releaseSpace is the namespace of the service account that the controllers are.
const releaseSpace = "tapp-system"

// rig is a namespace, and a controller of its Apps.
type rig struct{ *cluster.Rig }

// newRig makes a namespace, under a name of its own if none is given, and runs a
// controller for it.
func newRig(t *testing.T, name string) *rig {
	t.Helper()
	r := &rig{cluster.New(t, "app", cluster.Name(name))}
	r.Start([]string{controller.KindApp}, asRelease)
	return r
}

// asRelease has the controller be who it is when the chart installs it.
func asRelease(c *controller.Config) {
	c.REST.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + releaseSpace + ":tapp", Groups: []string{"system:serviceaccounts", "system:authenticated"}}
}

// simple is an App as users write them, with children that have its name.
func simple(name string, replicas int32) *appv1.App {
	return &appv1.App{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appv1.AppSpec{
			DeploymentTemplate: appv1.DeploymentTemplate{Name: name, Image: "nginx:1.25", Replicas: &replicas},
			ServiceTemplate:    appv1.ServiceTemplate{Name: name},
		},
	}
}

func (r *rig) create(a *appv1.App) *appv1.App {
	r.Helper()
	out, err := r.Apps.Create(r.Context(), a, metav1.CreateOptions{})
	if err != nil {
		r.Fatal(err)
	}
	return out
}

// edit changes an App's spec, whoever else writes to it.
func (r *rig) edit(name string, change func(*appv1.AppSpec)) {
	r.Helper()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		a, err := r.Apps.Get(r.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(&a.Spec)
		_, err = r.Apps.Update(r.Context(), a, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		r.Fatal(err)
	}
}

// where waits until the status of an App is about its present generation, and
// missing returns "".
func (r *rig) where(name, what string, missing func(*appv1.App) string) *appv1.App {
	r.Helper()
	var a *appv1.App
	r.Eventually(name+" is "+what, func(ctx context.Context) error {
		var err error
		if a, err = r.Apps.Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		if a.Status.ObservedGeneration != a.Generation {
			return fmt.Errorf("its generation is %d, and %d was observed", a.Generation, a.Status.ObservedGeneration)
		}
		if m := missing(a); m != "" {
			return errors.New(m)
		}
		return nil
	})
	return a
}

func (r *rig) ready(name string) *appv1.App {
	r.Helper()
	return r.where(name, "Ready", func(a *appv1.App) string {
		if !meta.IsStatusConditionTrue(a.Status.Conditions, appv1.ConditionReady) || meta.IsStatusConditionTrue(a.Status.Conditions, appv1.ConditionStalled) {
			return fmt.Sprintf("%+v", a.Status.Conditions)
		}
		return ""
	})
}

func (r *rig) stalled(name, message string) *appv1.App {
	r.Helper()
	return r.where(name, "Stalled", func(a *appv1.App) string {
		c := meta.FindStatusCondition(a.Status.Conditions, appv1.ConditionStalled)
		if c == nil || c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, message) {
			return fmt.Sprintf("%+v, want a message with %q", c, message)
		}
		return ""
	})
}

// deployment of that name; nil: there is none.
func (r *rig) deployment(name string) *appsv1.Deployment {
	r.Helper()
	return stored(r, name, r.Kube.AppsV1().Deployments(r.NS).Get)
}

// service of that name; nil: there is none.
func (r *rig) service(name string) *corev1.Service {
	r.Helper()
	return stored(r, name, r.Kube.CoreV1().Services(r.NS).Get)
}

// stored is what get finds under that name; nil: nothing.
func stored[T any](r *rig, name string, get func(context.Context, string, metav1.GetOptions) (*T, error)) *T {
	r.Helper()
	o, err := get(r.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		r.Fatal(err)
	}
	return o
}

// events about an App, as "Type Reason: message" with how often.
func (r *rig) events(name string) map[string]int {
	r.Helper()
	list, err := r.Events(r.Context(), appv1.Kind, name)
	if err != nil {
		r.Fatal(err)
	}
	out := map[string]int{}
	for _, e := range list {
		if e.Source.Component != appv1.Component {
			r.Errorf("the event %q comes from %q", e.Message, e.Source.Component)
		}
		out[cluster.EventLine(e)] += int(e.Count)
	}
	return out
}

func (r *rig) hasEvent(name, event string) {
	r.Helper()
	r.Eventually("the event "+event, func(context.Context) error {
		if all := r.events(name); all[event] == 0 {
			return fmt.Errorf("there are %v", all)
		}
		return nil
	})
}

// writes of the controller since the last call.
func (r *rig) writes(log *audit.Log) []audit.Request {
	r.Helper()
	var out []audit.Request
	for _, q := range r.Requests(log, audit.Filter{Agent: "tapp/" + r.NS + " "}) {
		if q.IsWrite() {
			out = append(out, q)
		}
	}
	return out
}
