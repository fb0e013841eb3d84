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
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"tkestack.io/tapp/controller"
	appv1 "tkestack.io/tapp/crd/app/v1"
	"tkestack.io/tapp/crd/client"
	"tkestack.io/tapp/test/audit"
)

// patient is how long anything may take. The machine may be busy; nothing waits
// longer than it has to.
const patient = 3 * time.Minute

// releaseSpace is the namespace of the service account that the controllers are.
const releaseSpace = "tapp-system"

// rig is a namespace on the cluster, and a controller of its Apps.
type rig struct {
	*testing.T
	config   *rest.Config
	kube     *kubernetes.Clientset
	apps     client.AppInterface
	ns       string
	agent    string // how the user agent of the controller begins
	registry *prometheus.Registry
}

// kubeconfig says where the cluster is.
func kubeconfig() (string, error) {
	path := os.Getenv("TAPP_KUBECONFIG")
	if path == "" {
		return "", errors.New("TAPP_KUBECONFIG names no cluster: run these tests by `make app-test`")
	}
	return path, nil
}

func connect() (*rest.Config, error) {
	path, err := kubeconfig()
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("reading TAPP_KUBECONFIG: %w", err)
	}
	config.QPS, config.Burst, config.UserAgent = -1, -1, "app-test"
	return config, nil
}

// newRig makes a namespace, under a name of its own if none is given, and runs a
// controller for it.
func newRig(t *testing.T, name string) *rig {
	t.Helper()
	config, err := connect()
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, config: config}
	if r.kube, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	apps, err := client.NewApps(config)
	if err != nil {
		t.Fatal(err)
	}
	ns, err := r.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, GenerateName: "app-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r.ns, r.apps = ns.Name, apps.Apps(ns.Name)
	t.Cleanup(func() {
		if err := r.kube.CoreV1().Namespaces().Delete(context.Background(), r.ns, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	// Without it the API server takes no pod.
	r.eventually("the namespace has its service account", func() string {
		_, err := r.kube.CoreV1().ServiceAccounts(r.ns).Get(t.Context(), "default", metav1.GetOptions{})
		return words(err)
	})
	r.start()
	return r
}

// start runs a controller until the test ends, or until stop is called.
func (r *rig) start() (stop func()) {
	r.Helper()
	c := controller.Defaults()
	c.REST = rest.CopyConfig(r.config)
	c.REST.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + releaseSpace + ":tapp", Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	c.Namespace, c.CreateCRD, c.MetricsAddress, c.Version = r.ns, false, "", r.ns
	c.Controllers = []string{controller.KindApp}
	c.Election.Enabled = false
	r.registry = prometheus.NewRegistry()
	c.Registry = r.registry
	r.agent = "tapp/" + r.ns + " "
	logger := ktesting.NewLogger(r.T, ktesting.NewConfig(ktesting.Verbosity(3), ktesting.BufferLogs(true)))
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), logger))
	ended := make(chan error, 1)
	go func() { ended <- controller.Run(ctx, c) }()
	done := false
	stop = func() {
		if done {
			return
		}
		done = true
		cancel()
		if err := <-ended; err != nil {
			r.Errorf("the controller ended with %v", err)
		}
	}
	r.Cleanup(stop)
	return stop
}

// eventually waits until a condition holds; it returns what is missing, or "".
func (r *rig) eventually(what string, missing func() string) {
	r.Helper()
	var m string
	err := wait.PollUntilContextTimeout(r.Context(), 50*time.Millisecond, patient, true, func(context.Context) (bool, error) {
		m = missing()
		return m == "", nil
	})
	if err != nil {
		r.Fatalf("%s: %s", what, m)
	}
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

func words(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
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
	r.eventually(name+" is "+what, func() string {
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
	d, err := r.kube.AppsV1().Deployments(r.ns).Get(r.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		r.Fatal(err)
	}
	return d
}

// service of that name; nil: there is none.
func (r *rig) service(name string) *corev1.Service {
	r.Helper()
	s, err := r.kube.CoreV1().Services(r.ns).Get(r.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		r.Fatal(err)
	}
	return s
}

// events about an App, as "Type Reason: message" with how often.
func (r *rig) events(name string) map[string]int {
	r.Helper()
	list, err := r.kube.CoreV1().Events(r.ns).List(r.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=App,involvedObject.name=" + name})
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
	r.eventually("the event "+event, func() string {
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
	r.Helper()
	path, err := kubeconfig()
	if err != nil {
		return "", err
	}
	// Not the test's context, which ends before its cleanups.
	cmd := exec.CommandContext(context.WithoutCancel(r.Context()), filepath.Join(filepath.Dir(path), "bin", "kubectl"), append([]string{"--kubeconfig", path, "-n", r.ns}, args...)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// follow the audit log from now on.
func (r *rig) follow() *audit.Log {
	r.Helper()
	path, err := kubeconfig()
	if err != nil {
		r.Fatal(err)
	}
	log, err := audit.Follow(filepath.Join(filepath.Dir(path), "logs", "audit.log"))
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
	for _, q := range audit.Select(all, audit.Filter{Agent: r.agent}) {
		if q.IsWrite() {
			out = append(out, q)
		}
	}
	return out
}
