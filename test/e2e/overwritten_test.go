//go:build cluster

package e2e

import (
	"strings"
	"testing"

	"tkestack.io/tapp/test/gen"
)

// An image that somebody writes into a pod stays at rest, as a StatefulSet leaves it, and is
// told at once. The next update in place sets it back, and so does a restart of the instance.
func TestImageOfSomebodyElse(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app"))
	const told = "instance 1: container main runs demo:v2, its template says demo:v1"
	in(t, ns).Kubectl("set", "image", "pod/app-1", "main=demo:v2")
	podIs(t, ns, 1, "demo:v2")
	before := pods(t, ns)
	tapp := stalled(t, ns, "app", told)
	if tapp.Status.UpdatedReplicas != 2 || tapp.Status.ReadyReplicas != 3 {
		t.Errorf("%d are updated and %d ready, want 2 and 3", tapp.Status.UpdatedReplicas, tapp.Status.ReadyReplicas)
	}
	if got := plugin(t, ns, "explain", "app", "1"); !strings.Contains(got, "ImageDiffers") {
		t.Errorf("explain does not tell it:\n%s", got)
	}
	in(t, ns).Kubectl("annotate", "tapp", "app", "note=here") // at rest it stays, whatever else is written
	stalled(t, ns, "app", told)
	sameUIDs(t, before, pods(t, ns))
	podIs(t, ns, 1, "demo:v2")

	change(t, ns, "app", gen.Default(gen.Label("tier", "cache")))
	settled(t, ns, "app")
	podIs(t, ns, 1, "demo:v1")
	sameUIDs(t, before, pods(t, ns))

	in(t, ns).Kubectl("set", "image", "pod/app-1", "main=demo:v2")
	stalled(t, ns, "app", told)
	plugin(t, ns, "restart", "app", "1")
	settled(t, ns, "app")
	podIs(t, ns, 1, "demo:v1")
}
