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
	"os/exec"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"tkestack.io/tapp/controller"
	appv1 "tkestack.io/tapp/crd/app/v1"
	"tkestack.io/tapp/crd/client"
	"tkestack.io/tapp/test/audit"
	"tkestack.io/tapp/test/cluster"
)

// releaseSpace is the namespace of the service account that the controllers are.
const releaseSpace = "tapp-system"

// rig is a namespace on the cluster, and a controller of its Apps.
type rig struct {
	*cluster.Space
	apps client.AppInterface
}

// newRig makes a namespace, under a name of its own if none is given, and runs a
// controller for it.
func newRig(t *testing.T, name string) *rig {
	t.Helper()
	r := &rig{}
	if name == "" {
		r.Space = cluster.NewSpace(t, "app")
	} else {
		r.Space = cluster.NewNamedSpace(t, "app", name)
	}
	apps, err := client.NewApps(r.Config)
	if err != nil {
		t.Fatal(err)
	}
	r.apps = apps.Apps(r.NS)
	r.Start([]string{controller.KindApp}, asRelease)
	return r
}

// asRelease has the controller be who it is when the chart installs it.
func asRelease(c *controller.Config) {
	c.REST.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + releaseSpace + ":tapp", Groups: []string{"system:serviceaccounts", "system:authenticated"}}
}

// never fails when something happens within a time.
func (r *rig) never(what string, during time.Duration, happened func() string) {
	r.Helper()
	err := wait.PollUntilContextTimeout(r.Context(), 200*time.Millisecond, during, true, func(context.Context) (bool, error) {
		if h := happened(); h != "" {
			return false, errors.New(h)
		}
		return false, nil
	})
	if !wait.Interrupted(err) {
		r.Fatalf("%s: %v", what, err)
	}
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
	out, err := r.apps.Create(r.Context(), a, metav1.CreateOptions{})
	if err != nil {
		r.Fatal(err)
	}
	return out
}

// edit changes an App's spec, whoever else writes to it.
func (r *rig) edit(name string, change func(*appv1.AppSpec)) {
	r.Helper()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		a, err := r.apps.Get(r.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(&a.Spec)
		_, err = r.apps.Update(r.Context(), a, metav1.UpdateOptions{})
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
	r.Eventually(name+" is "+what, func() string {
		var err error
		if a, err = r.apps.Get(r.Context(), name, metav1.GetOptions{}); err != nil {
			return err.Error()
		}
		if a.Status.ObservedGeneration != a.Generation {
			return fmt.Sprintf("its generation is %d, and %d was observed", a.Generation, a.Status.ObservedGeneration)
		}
		return missing(a)
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
	list, err := r.Kube.CoreV1().Events(r.NS).List(r.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=App,involvedObject.name=" + name})
	if err != nil {
		r.Fatal(err)
	}
	out := map[string]int{}
	for _, e := range list.Items {
		if e.Source.Component != appv1.Component {
			r.Errorf("the event %q comes from %q", e.Message, e.Source.Component)
		}
		out[fmt.Sprintf("%s %s: %s", e.Type, e.Reason, e.Message)] += int(e.Count)
	}
	return out
}

func (r *rig) hasEvent(name, event string) {
	r.Helper()
	r.Eventually("the event "+event, func() string {
		if all := r.events(name); all[event] == 0 {
			return fmt.Sprintf("there are %v", all)
		}
		return ""
	})
}

// kubectl runs the real one in the rig's namespace and returns what it prints.
func (r *rig) kubectl(args ...string) string {
	r.Helper()
	out, err := r.tryKubectl(args...)
	if err != nil {
		r.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (r *rig) tryKubectl(args ...string) (string, error) {
	// Not the test's context, which ends before its cleanups.
	cmd := exec.CommandContext(context.WithoutCancel(r.Context()), r.Program("kubectl"), append([]string{"--kubeconfig", r.Kubeconfig, "-n", r.NS}, args...)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// follow the audit log from now on.
func (r *rig) follow() *audit.Log {
	r.Helper()
	log, err := audit.Follow(r.LogFile("audit.log"))
	if err != nil {
		r.Fatal(err)
	}
	return log
}

// writes of the controller since the last call.
func (r *rig) writes(log *audit.Log) []audit.Request {
	r.Helper()
	all, err := log.Read()
	if err != nil {
		r.Fatal(err)
	}
	var out []audit.Request
	for _, q := range audit.Select(all, audit.Filter{Agent: "tapp/" + r.NS + " "}) {
		if q.IsWrite() {
			out = append(out, q)
		}
	}
	return out
}
