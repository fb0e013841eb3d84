//go:build cluster

// Package shell tests the controller's shell against a real API server, run
// in-process so that its transport can fail: writes that are refused, answers
// that are lost, watches that stall, an API server that is away, and a crash
// between any two writes.
package shell

import (
	"fmt"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/controller"
	"tkestack.io/tapp/crd/client"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/witness"
)

// rig is a namespace of its own on the cluster, with TApps.
type rig struct {
	*cluster.Space
	tapps client.TAppInterface
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{Space: cluster.NewSpace(t, "shell")}
	r.Forceful()
	tapps, err := client.New(r.Config)
	if err != nil {
		t.Fatal(err)
	}
	r.tapps = tapps.TApps(r.NS)
	return r
}

// start runs a controller for the rig's namespace.
func (r *rig) start(change ...func(*controller.Config)) *cluster.Controller {
	r.Helper()
	return r.Start([]string{controller.KindTApp}, change...)
}

// wrapped puts a transport around the controller's.
func wrapped(wrap func(http.RoundTripper) http.RoundTripper) func(*controller.Config) {
	return func(c *controller.Config) { c.Wrap = wrap }
}

func (r *rig) watchPods() *witness.Witness {
	r.Helper()
	return witness.Watch(r.T, r.Kube.CoreV1().Pods(r.NS))
}

// create a TApp.
func (r *rig) create(t *tappv1.TApp) *tappv1.TApp {
	r.Helper()
	out, err := r.tapps.Create(r.Context(), t, metav1.CreateOptions{})
	if err != nil {
		r.Fatal(err)
	}
	return out
}

// edit changes a TApp's spec, whoever else writes to it.
func (r *rig) edit(name string, change func(*tappv1.TApp)) {
	r.Helper()
	r.Eventually("edit "+name, func() string {
		t, err := r.tapps.Get(r.Context(), name, metav1.GetOptions{})
		if err == nil {
			change(t)
			_, err = r.tapps.Update(r.Context(), t, metav1.UpdateOptions{})
		}
		if err != nil {
			return err.Error()
		}
		return ""
	})
}

// settled waits until the controller says that all is as the spec wants it.
func (r *rig) settled(name string) *tappv1.TApp {
	r.Helper()
	var t *tappv1.TApp
	r.Eventually(name+" settles", func() string {
		var err error
		if t, err = r.tapps.Get(r.Context(), name, metav1.GetOptions{}); err != nil {
			return err.Error()
		}
		for _, c := range t.Status.Conditions {
			if c.Type == tappv1.ConditionReady && c.Status == metav1.ConditionTrue && c.ObservedGeneration == t.Generation && t.Status.ObservedGeneration == t.Generation {
				return ""
			}
		}
		return fmt.Sprintf("generation %d, status %+v", t.Generation, t.Status)
	})
	return t
}

// pods of the namespace by name.
func (r *rig) pods() map[string]*corev1.Pod {
	r.Helper()
	list, err := r.Kube.CoreV1().Pods(r.NS).List(r.Context(), metav1.ListOptions{})
	if err != nil {
		r.Fatal(err)
	}
	out := map[string]*corev1.Pod{}
	for i := range list.Items {
		out[list.Items[i].Name] = &list.Items[i]
	}
	return out
}

// events about a TApp with a reason.
func (r *rig) events(reason string) []string {
	r.Helper()
	list, err := r.Kube.CoreV1().Events(r.NS).List(r.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=TApp,reason=" + reason})
	if err != nil {
		r.Fatal(err)
	}
	var out []string
	for _, e := range list.Items {
		out = append(out, e.Message)
	}
	return out
}
