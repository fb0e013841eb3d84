//go:build cluster

// Package nodes tests what becomes of TApps when real nodes are lost, and when real
// load moves an autoscaler. The cluster has three real nodes, so that two of them can
// be away at the same time, and it calls a silent one not ready early.
//
//	suite.go    what the tests have: the cluster, the controller, waiting
//	loss.go     the ways in which a node is lost, and how it comes back
//	runtime.go  what really runs on the nodes, whatever the API server believes
package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"tkestack.io/tapp/crd/client"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/gen"
	"tkestack.io/tapp/test/witness"
)

// lostAfter is how long a node has to be not ready to count as lost.
const lostAfter = 10 * time.Second

// suite is what all tests share.
var suite struct {
	*cluster.Cluster
	devcluster string
	tapps      client.Interface
}

// connect finds the cluster.
func connect() (err error) {
	s := &suite
	if s.devcluster = os.Getenv("TAPP_DEVCLUSTER"); s.devcluster == "" {
		return errors.New("TAPP_DEVCLUSTER is not set: run these tests by `make nodes-test`")
	}
	if s.Cluster, err = cluster.Connect("nodes-test"); err != nil {
		return err
	}
	s.tapps, err = client.New(s.Config)
	return err
}

// startController runs `tapp controller` until stop is called, which says how it
// ended.
func startController(ctx context.Context) (stop func() error, err error) {
	log, err := os.Create(suite.LogFile("tapp-nodes.log"))
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(os.Getenv("TAPP_BIN"), "controller", "--kubeconfig", suite.Kubeconfig, "--create-crd", "--node-lost-after", lostAfter.String(),
		"--metrics-address", "127.0.0.1:0", "--v", "3")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start tapp: %w", err)
	}
	stop = func() error {
		defer func() { _ = log.Close() }()
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return fmt.Errorf("stop tapp: %w", err)
		}
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("tapp ended: %w; see %s", err, log.Name())
		}
		return nil
	}
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, cluster.Patience, true, func(ctx context.Context) (bool, error) {
		_, err := suite.tapps.TApps("").List(ctx, metav1.ListOptions{})
		return err == nil, nil
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("tapp has not made its CRD: %w; see %s", err, log.Name()), stop())
	}
	return stop, nil
}

// rig is a namespace in which a test works, with those who watch it.
type rig struct {
	*testing.T
	ns      string
	witness *witness.Witness
	told    *told
}

func newRig(t *testing.T) *rig {
	t.Helper()
	name := strings.NewReplacer("/", "-", "_", "-").Replace(strings.ToLower(strings.TrimPrefix(t.Name(), "Test")))
	ns, err := suite.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, ns: ns.Name}
	t.Cleanup(r.leave)
	r.witness = witness.Watch(t, suite.Kube.CoreV1().Pods(r.ns))
	r.told = listen(t, r.ns)
	return r
}

// leave removes the namespace; if the test failed, after telling what is in it.
func (r *rig) leave() {
	ctx := context.Background() // the test's has ended
	if r.Failed() {
		for _, what := range []string{"nodes", "pods -o wide", "tapps -o yaml", "events"} {
			out, _ := exec.CommandContext(ctx, suite.Program("kubectl"), append([]string{"--kubeconfig", suite.Kubeconfig, "-n", r.ns, "get"}, strings.Fields(what)...)...).CombinedOutput()
			r.Logf("%s:\n%s", what, out)
		}
	}
	if err := suite.Kube.CoreV1().Namespaces().Delete(ctx, r.ns, metav1.DeleteOptions{}); err != nil {
		r.Errorf("delete namespace %s: %v", r.ns, err)
	}
}

// eventually waits until check returns nil.
func (r *rig) eventually(what string, check func(context.Context) error) {
	r.Helper()
	began, last := time.Now(), errors.New("nothing")
	err := wait.PollUntilContextTimeout(r.Context(), 200*time.Millisecond, cluster.Patience, true, func(ctx context.Context) (bool, error) {
		err := check(ctx)
		if ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		r.Fatalf("%s: not within %s; last seen: %v", what, cluster.Patience, last)
	}
	r.Logf("%s: after %s", what, time.Since(began).Round(100*time.Millisecond))
}

// create TApps, and wait until they are ready.
func (r *rig) create(tapps ...*tappv1.TApp) {
	r.Helper()
	for _, t := range tapps {
		if _, err := suite.tapps.TApps(r.ns).Create(r.Context(), t, metav1.CreateOptions{}); err != nil {
			r.Fatalf("create TApp %s: %v", t.Name, err)
		}
	}
	for _, t := range tapps {
		r.settles(t.Name)
	}
}

// change a TApp as it is now.
func (r *rig) change(name string, opts ...gen.Option) {
	r.Helper()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		t, err := suite.tapps.TApps(r.ns).Get(r.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, o := range opts {
			o(t)
		}
		_, err = suite.tapps.TApps(r.ns).Update(r.Context(), t, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		r.Fatalf("change TApp %s: %v", name, err)
	}
}

// settles waits until the TApp is Ready at its present generation, and nothing is
// left to do.
func (r *rig) settles(name string) {
	r.Helper()
	r.eventually("TApp "+name+" is ready", func(ctx context.Context) error {
		t, err := suite.tapps.TApps(r.ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if t.Status.ObservedGeneration != t.Generation || !meta.IsStatusConditionTrue(t.Status.Conditions, tappv1.ConditionReady) {
			return fmt.Errorf("generation %d: %v %v", t.Generation, t.Status.Statuses, t.Status.Conditions)
		}
		return nil
	})
}

func (r *rig) tapp(name string) *tappv1.TApp {
	r.Helper()
	t, err := suite.tapps.TApps(r.ns).Get(r.Context(), name, metav1.GetOptions{})
	if err != nil {
		r.Fatal(err)
	}
	return t
}

// pods of the namespace, by name.
func (r *rig) pods() map[string]*corev1.Pod {
	r.Helper()
	list, err := suite.Kube.CoreV1().Pods(r.ns).List(r.Context(), metav1.ListOptions{})
	if err != nil {
		r.Fatal(err)
	}
	out := map[string]*corev1.Pod{}
	for i := range list.Items {
		out[list.Items[i].Name] = &list.Items[i]
	}
	return out
}

// podIs waits for a pod of that name.
func (r *rig) podIs(name, what string, check func(*corev1.Pod) bool) *corev1.Pod {
	r.Helper()
	var p *corev1.Pod
	r.eventually("pod "+name+" "+what, func(ctx context.Context) error {
		var err error
		if p, err = suite.Kube.CoreV1().Pods(r.ns).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		if !check(p) {
			return fmt.Errorf("UID %s on %q: %s, dying since %v, %v", p.UID, p.Spec.NodeName, p.Status.Phase, p.DeletionTimestamp, p.Status.Conditions)
		}
		return nil
	})
	return p
}

// command runs a program that must succeed.
func (r *rig) command(program string, args ...string) string {
	r.Helper()
	out, err := exec.CommandContext(r.Context(), program, args...).CombinedOutput()
	if err != nil {
		r.Fatalf("%s %s: %v\n%s", filepath.Base(program), strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r *rig) runKubectl(args ...string) string {
	r.Helper()
	return r.command(suite.Program("kubectl"), append([]string{"--kubeconfig", suite.Kubeconfig, "--namespace", r.ns}, args...)...)
}

// runDevcluster works on the cluster itself.
func (r *rig) runDevcluster(args ...string) {
	r.Helper()
	r.command(suite.devcluster, append(args, "--dir", filepath.Dir(suite.Kubeconfig))...)
}
