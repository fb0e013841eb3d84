//go:build cluster

// Package install tests TApp as its users get it: the chart, installed by Helm into
// a cluster with cert-manager, from an image in a registry.
//
//	suite.go        what the tests have: the cluster, Helm, kubectl
//	release.go      installing and removing the chart
//	load.go         admission requests that never stop
//	modes_test.go   the three ways to a certificate
//	life_test.go    upgrade, uninstall, reinstall
//	renewal_test.go certificates that are renewed while requests come in
//	metrics_test.go what Prometheus sees
//	rights_test.go  what is granted, and what is used
//	docs_test.go    pages of the documentation, as their readers go through them
//
// The chart has objects that a cluster can have only once, so that the tests run one
// after the other.
package install

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
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

	"tkestack.io/tapp/crd/client"
	"tkestack.io/tapp/test/audit"
)

const (
	chartDir      = "../../chart"
	releaseName   = "tapp"
	releaseSpace  = "tapp-system"
	patience      = 3 * time.Minute // ends what hangs; nothing waits longer than it has to
	restricted    = "pod-security.kubernetes.io/enforce"
	imageVariable = "TAPP_IMAGE"
)

// suite is what all tests share. TestMain makes it.
var suite struct {
	kubeconfig string
	bin        string // kubectl and helm
	devcluster string
	program    string // tapp, which is the plugin of kubectl too
	repository string // of the image, and its tag
	tag        string

	kube  kubernetes.Interface
	tapps client.Interface
	// audit is followed from before the first installation on.
	audit *audit.Log
}

// connect fills the suite from the environment.
func connect(ctx context.Context) error {
	s := &suite
	s.kubeconfig = os.Getenv("TAPP_KUBECONFIG")
	if s.kubeconfig == "" {
		return fmt.Errorf("TAPP_KUBECONFIG names no cluster: run these tests by `make install-test`")
	}
	dir := filepath.Dir(s.kubeconfig)
	s.bin = filepath.Join(dir, "bin")
	if s.devcluster = os.Getenv("TAPP_DEVCLUSTER"); s.devcluster == "" {
		s.devcluster = filepath.Join(s.bin, "devcluster")
	}
	if s.program = os.Getenv("TAPP_BIN"); s.program == "" {
		return fmt.Errorf("TAPP_BIN names no tapp program: run these tests by `make install-test`")
	}
	var found bool
	if s.repository, s.tag, found = strings.Cut(os.Getenv(imageVariable), ":"); !found {
		return fmt.Errorf("%s names no image, as tapp:v1; it has to be in the cluster's registry", imageVariable)
	}
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	if err != nil {
		return fmt.Errorf("read TAPP_KUBECONFIG: %w", err)
	}
	config.UserAgent = "tapp-install-test"
	config.QPS, config.Burst = 1000, 2000
	if s.tapps, err = client.New(config); err != nil {
		return fmt.Errorf("make a client for TApps: %w", err)
	}
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	if s.kube, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	if s.audit, err = audit.Follow(filepath.Join(dir, "logs", "audit.log")); err != nil {
		return err
	}
	// Only restricted pods are let in, so that every test is one of that, too.
	_, err = s.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: releaseSpace, Labels: map[string]string{restricted: "restricted"},
	}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the namespace of the release: %w", err)
	}
	return nil
}

// command runs a program of the cluster, and returns all that it prints.
func command(ctx context.Context, input, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(suite.bin, name), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+suite.kubeconfig)
	cmd.Stdin = strings.NewReader(input)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// kubectl must succeed.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := command(t.Context(), "", "kubectl", args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// apply applies a manifest, and returns what kubectl prints.
func apply(ctx context.Context, namespace, manifest string, args ...string) (string, error) {
	return command(ctx, manifest, "kubectl", append([]string{"apply", "--namespace", namespace, "--filename", "-"}, args...)...)
}

func mustApply(t *testing.T, namespace, manifest string) {
	t.Helper()
	if out, err := apply(t.Context(), namespace, manifest); err != nil {
		t.Fatalf("kubectl apply: %v\n%s\n%s", err, out, manifest)
	}
}

// namespace makes a namespace for the test, which goes with it.
func namespace(t *testing.T) string {
	t.Helper()
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-", ".", "-").Replace(strings.TrimPrefix(t.Name(), "Test")))
	ns, err := suite.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: name[:min(len(name), 40)] + "-",
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create a namespace: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(describe(ns.Name))
		}
		if err := suite.kube.CoreV1().Namespaces().Delete(context.Background(), ns.Name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("delete namespace %s: %v", ns.Name, err)
		}
	})
	return ns.Name
}

// describe tells of a namespace what a person would look at first.
func describe(namespace string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	out, err := command(ctx, "", "kubectl", "--namespace", namespace, "get", "tapps,pods,events", "--output", "wide")
	if err != nil {
		return out + err.Error()
	}
	return out
}

// eventually waits until check returns nil, for as long as the suite is patient.
// What check said last is what the test fails with.
func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	if err := poll(t.Context(), check); err != nil {
		t.Fatalf("%s: not within %s; last seen: %v", what, patience, err)
	}
}

func poll(ctx context.Context, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil { // else it only says that time is up
			last = err
		}
		select {
		case <-ctx.Done():
			return last
		case <-tick.C:
		}
	}
}
