//go:build cluster

package page

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/controller"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/local"
)

// The clusters of the fleet by their names: the hub, which is one of its own, and a member.
const hubName, memberName = "gz-1", "bj-2"

// fleetRig is a namespace of a hub and of a member, with the controllers of both.
type fleetRig struct {
	*rig
	member *cluster.Rig
}

func newFleet(t *testing.T) *fleetRig {
	t.Helper()
	if err := cluster.ApplyCRDs(t.Context(), "page-test", controller.Kinds()...); err != nil {
		t.Fatal(err)
	}
	r := &fleetRig{rig: &rig{cluster.New(t, "page")}}
	r.ForceDeletePods()
	there, err := cluster.ConnectTo(filepath.Join(os.Getenv("TAPP_FLEET"), "member", "kubeconfig"), "page-test")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{r.NS, "tapp-system"} { // that of the test, and of the hub's account
		space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := there.Kube.CoreV1().Namespaces().Create(t.Context(), space, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	r.member = there.In(t, r.NS)
	r.member.ForceDeletePods()
	r.member.Start([]string{controller.KindTApp, controller.KindAdvDeployment}, func(c *controller.Config) { c.CreateCRD = true })
	plugin := there.Program("kubectl-tapp")
	if err := errors.Join(os.RemoveAll(plugin), os.Symlink(there.Program("tapp"), plugin)); err != nil {
		t.Fatal(err)
	}
	r.Eventually("the member has joined, when its controller has made its kinds", func(ctx context.Context) error {
		out, err := there.Command(ctx, "", "kubectl-tapp", "fleet", "join", memberName, "--pods", "--allow-local", "--cluster-namespace", r.NS, "--hub-kubeconfig", r.Kubeconfig)
		return cluster.When(err != nil, out)
	})
	r.Start(controller.Kinds(), func(c *controller.Config) {
		c.Fleet = controller.FleetConfig{ClusterNamespace: r.NS, ID: r.NS, SelfCluster: hubName, AllowLocal: true, NoMemberLease: true}
	})
	return r
}

// api runs `tapp api` on the hub until the test ends, and returns the address of its page.
func (r *fleetRig) api() string {
	r.Helper()
	address, err := local.FreeAddress()
	if err != nil {
		r.Fatal(err)
	}
	p, err := r.Launch("api", "--listen-address", address, "--cluster-namespace", r.NS, "--fleet-id", r.NS, "--self-cluster", hubName, "--allow-local-clusters")
	if err == nil {
		err = p.WaitReady(r.Context())
	}
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		if err := p.Terminate(); err != nil {
			r.Errorf("%v: %s", err, p.Tail(2000))
		}
	})
	return "https://" + address + "/"
}

// cut the member off, and return what brings it back. It is back at the end of the test.
func (r *fleetRig) cut() (back func()) {
	r.Helper()
	component := func(ctx context.Context, verb string) {
		r.Helper()
		if out, err := r.member.Cluster.Devcluster(ctx, verb, "kube-apiserver"); err != nil {
			r.Fatalf("%v: %s", err, out)
		}
	}
	component(r.Context(), "stop")
	away := true
	back = func() {
		if away {
			away = false
			component(context.WithoutCancel(r.Context()), "start")
		}
	}
	r.Cleanup(back)
	return back
}
