//go:build cluster

// Package shell tests the controller's shell against a real API server, run
// in-process so that its transport can fail: writes that are refused, answers
// that are lost, watches that stall, an API server that is away, and a crash
// between any two writes.
package shell

import (
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/controller"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/witness"
)

// rig is a namespace on simulated nodes.
type rig struct{ *cluster.Rig }

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{cluster.New(t, "shell")}
	r.ForceDeletePods()
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

// events about TApps with a reason.
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
