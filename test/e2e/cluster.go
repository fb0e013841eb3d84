//go:build cluster

// Package e2e tests TApp on a real cluster: a built tapp runs as a process beside
// it, and is watched from outside, as users and their Services see it.
//
//	cluster.go     what the tests have: the cluster, namespaces, TApps
//	controller.go  the tapp process: start, stop, kill
//	wait.go        waiting for conditions, never for time to pass
//	pods.go        what tests ask of pods
//	feed.go        one watch of all pods, for everything below
//	oracle.go      what must hold at every write of the suite (S1, S4, S5, S7)
//	floor.go       what must hold during one test (S2, order of updates)
//	endpoints.go   what a Service routes to
//	kubectl.go     the real kubectl
//
// Tests that restart the controller or the API server run first, one by one. All
// others run in parallel, each in a namespace of its own.
package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"

	"tkestack.io/tapp/crd/client"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/gen"
)

// suite is what all tests share. TestMain makes it.
var suite struct {
	kubeconfig string
	kubectl    string
	devcluster string
	auditLog   string

	kube       kubernetes.Interface
	tapps      client.Interface
	controller *process
	feed       *feed
	oracle     *oracle
}

// ownNamespace labels the namespaces of this suite.
const ownNamespace = "e2e.tapp.tkestack.io"

// connect fills the suite from the environment.
func connect() error {
	s := &suite
	s.kubeconfig = os.Getenv("TAPP_KUBECONFIG")
	if s.kubeconfig == "" {
		return fmt.Errorf("TAPP_KUBECONFIG names no cluster: run these tests by `make e2e`")
	}
	dir := filepath.Dir(s.kubeconfig)
	s.kubectl = environment("TAPP_KUBECTL", filepath.Join(dir, "bin", "kubectl"))
	s.devcluster = environment("TAPP_DEVCLUSTER", filepath.Join(dir, "bin", "devcluster"))
	s.auditLog = environment("TAPP_AUDIT_LOG", filepath.Join(dir, "logs", "audit.log"))

	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	if err != nil {
		return fmt.Errorf("read TAPP_KUBECONFIG: %w", err)
	}
	config.UserAgent = "tapp-e2e"
	config.QPS, config.Burst = 1000, 2000
	if s.tapps, err = client.New(config); err != nil {
		return fmt.Errorf("make a client for TApps: %w", err)
	}
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	if s.kube, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	return nil
}

func environment(name, fallback string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return fallback
}

// namespace makes a namespace for the test, which goes with it. When the test has
// failed, what is in it is printed first.
func namespace(t *testing.T) string {
	t.Helper()
	name := strings.ToLower(t.Name())
	name = strings.NewReplacer("/", "-", "_", "-").Replace(strings.TrimPrefix(name, "test"))
	ns, err := suite.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: name[:min(len(name), 40)] + "-", Labels: map[string]string{ownNamespace: "true"},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create a namespace: %v", err)
	}
	leaveAtEnd(t, ns.Name)
	// Without it the API server takes no pod.
	eventually(t, "the namespace has its service account", func(ctx context.Context) error {
		_, err := suite.kube.CoreV1().ServiceAccounts(ns.Name).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	return ns.Name
}

// leaveAtEnd has the namespace go with the test.
func leaveAtEnd(t *testing.T, ns string) {
	past, stop := keepChronicle(ns)
	t.Cleanup(func() {
		stop()
		leave(t, ns, past)
	})
}

// leave ends the use of a namespace. It is not waited for: TestMain does that.
func leave(t *testing.T, ns string, past *chronicle) {
	t.Helper()
	for _, v := range suite.oracle.take(ns) {
		t.Error(v)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if t.Failed() {
		t.Log(describe(ctx, ns) + past.String())
		if os.Getenv("TAPP_KEEP") != "" {
			return // for a look at what is left
		}
	}
	if err := suite.kube.CoreV1().Namespaces().Delete(ctx, ns, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Errorf("delete namespace %s: %v", ns, err)
	}
}

// describe tells of a namespace what a person would look at first.
func describe(ctx context.Context, ns string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "namespace %s\n", ns)
	tapps, err := suite.tapps.TApps(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	for i := range tapps.Items {
		t := &tapps.Items[i]
		t.ManagedFields = nil
		if text, err := yaml.Marshal(t); err == nil && len(text) < 20_000 {
			b.Write(text)
		}
	}
	list, err := suite.kube.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	for i := range list.Items[:min(len(list.Items), 30)] {
		fmt.Fprintln(&b, summary(&list.Items[i]))
	}
	events, err := suite.kube.CoreV1().Events(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	for _, e := range events.Items {
		if e.InvolvedObject.Kind == tappv1.Kind || e.Type == corev1.EventTypeWarning {
			fmt.Fprintf(&b, "event %s %s of %s: %s\n", e.Type, e.Reason, e.InvolvedObject.Name, e.Message)
		}
	}
	return b.String()
}

// create creates the TApp.
func create(t *testing.T, ns string, tapp *tappv1.TApp) *tappv1.TApp {
	t.Helper()
	created, err := suite.tapps.TApps(ns).Create(t.Context(), tapp, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create TApp %s: %v", tapp.Name, err)
	}
	return created
}

// change applies options to the TApp as it is now.
func change(t *testing.T, ns, name string, opts ...gen.Option) *tappv1.TApp {
	t.Helper()
	var changed *tappv1.TApp
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		tapp, err := suite.tapps.TApps(ns).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, o := range opts {
			o(tapp)
		}
		changed, err = suite.tapps.TApps(ns).Update(t.Context(), tapp, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		t.Fatalf("change TApp %s: %v", name, err)
	}
	return changed
}

// get reads the TApp.
func get(t *testing.T, ns, name string) *tappv1.TApp {
	t.Helper()
	tapp, err := suite.tapps.TApps(ns).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("get TApp %s: %v", name, err)
	}
	return tapp
}

// run creates a TApp in a namespace of its own and waits until it is ready.
func run(t *testing.T, tapp *tappv1.TApp) (string, *tappv1.TApp) {
	t.Helper()
	ns := namespace(t)
	create(t, ns, tapp)
	return ns, settled(t, ns, tapp.Name)
}
