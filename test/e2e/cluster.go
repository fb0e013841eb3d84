//go:build cluster

package e2e

import (
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/gen"
)

// suite is what all tests share. TestMain makes it.
var suite struct {
	*cluster.Cluster
	controller *process
	feed       *feed
	oracle     *oracle
}

// ownNamespace labels the namespaces of this suite.
const ownNamespace = "e2e.tapp.tkestack.io"

// patience is how long anything may take that a test waits for.
const patience = cluster.Patience

// namespace makes a namespace for the test, which goes with it. When the test has failed,
// what is in it is printed, and what its pods went through. What the oracle has seen fails
// the test.
func namespace(t *testing.T, edits ...func(*corev1.Namespace)) string {
	t.Helper()
	edits = append(edits, cluster.Labels(map[string]string{ownNamespace: "true"}))
	ns := cluster.New(t, "e2e", edits...).NS
	past, stop := keepChronicle(ns)
	t.Cleanup(func() {
		stop()
		for _, v := range suite.oracle.take(ns) {
			t.Error(v)
		}
		if t.Failed() {
			t.Log(past)
		}
	})
	return ns
}

// in is the rig of a namespace.
func in(t *testing.T, ns string) *cluster.Rig { return suite.In(t, ns) }

// create creates the TApp.
func create(t *testing.T, ns string, tapp *tappv1.TApp) *tappv1.TApp {
	t.Helper()
	return in(t, ns).Create(tapp)
}

// change applies options to the TApp as it is now.
func change(t *testing.T, ns, name string, opts ...gen.Option) *tappv1.TApp {
	t.Helper()
	return in(t, ns).Change(name, opts...)
}

// get reads the TApp.
func get(t *testing.T, ns, name string) *tappv1.TApp {
	t.Helper()
	return in(t, ns).Get(name)
}

// run creates a TApp in a namespace of its own and waits until it is ready.
func run(t *testing.T, tapp *tappv1.TApp) (string, *tappv1.TApp) {
	t.Helper()
	ns := namespace(t)
	create(t, ns, tapp)
	return ns, settled(t, ns, tapp.Name)
}

// kubectl runs the real kubectl, which must succeed, and returns what it prints.
func kubectl(t *testing.T, ns string, args ...string) string {
	t.Helper()
	return in(t, ns).Kubectl(args...)
}

// tryKubectl returns all that kubectl prints, also when it fails.
func tryKubectl(t *testing.T, ns string, args ...string) (string, error) {
	t.Helper()
	return in(t, ns).TryKubectl(args...)
}

// apply applies a file of testdata, with the strict validation that is kubectl's
// default.
func apply(t *testing.T, ns, file string) string {
	t.Helper()
	return kubectl(t, ns, "apply", "--validate=strict", "--filename", filepath.Join("testdata", file))
}
