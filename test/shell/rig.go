//go:build cluster

// Package shell tests the controller's shell against a real API server, run
// in-process so that its transport can fail: writes that are refused, answers
// that are lost, watches that stall, an API server that is away, and a crash
// between any two writes.
package shell

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"tkestack.io/tapp/controller"
	"tkestack.io/tapp/crd/client"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/witness"
)

// patient is how long anything may take. The machine may be busy; nothing waits
// longer than it has to.
const patient = 3 * time.Minute

// rig is a namespace of its own on the cluster.
type rig struct {
	*testing.T
	config *rest.Config
	kube   *kubernetes.Clientset
	tapps  client.TAppInterface
	ns     string
}

// connect says where the cluster is.
func connect() (*rest.Config, error) {
	path := os.Getenv("TAPP_KUBECONFIG")
	if path == "" {
		return nil, fmt.Errorf("TAPP_KUBECONFIG names no cluster: give the kubeconfig of one with simulated nodes (make up NODES=sim)")
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("reading TAPP_KUBECONFIG: %w", err)
	}
	config.QPS, config.Burst, config.UserAgent = -1, -1, "shell-test"
	return config, nil
}

func newRig(t *testing.T) *rig {
	t.Helper()
	config, err := connect()
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, config: config}
	if r.kube, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	tapps, err := client.New(config)
	if err != nil {
		t.Fatal(err)
	}
	ns, err := r.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "shell-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r.ns, r.tapps = ns.Name, tapps.TApps(ns.Name)
	t.Cleanup(func() {
		ctx, now := context.Background(), int64(0)
		if err := r.kube.CoreV1().Pods(r.ns).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
		if err := r.kube.CoreV1().Namespaces().Delete(ctx, r.ns, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	// Without it the API server takes no pod.
	r.eventually("the namespace has its service account", func() string {
		if _, err := r.kube.CoreV1().ServiceAccounts(r.ns).Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
	return r
}

// run is one run of the controller.
type run struct {
	rig      *rig
	registry prometheus.Gatherer
	cancel   context.CancelFunc
	ended    chan struct{}
	err      error
}

// start runs a controller for the rig's namespace.
func (r *rig) start(change ...func(*controller.Config)) *run {
	r.Helper()
	c := controller.Defaults()
	c.REST, c.Namespace, c.CreateCRD, c.MetricsAddress, c.Version = r.config, r.ns, false, "", "shell"
	c.Election.Enabled = false
	c.Registry = prometheus.NewRegistry()
	for _, f := range change {
		f(&c)
	}
	// Not the test's context, which ends before its cleanups.
	logger := ktesting.NewLogger(r.T, ktesting.NewConfig(ktesting.Verbosity(3), ktesting.BufferLogs(true)))
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), logger))
	out := &run{rig: r, registry: c.Registry, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(out.ended)
		out.err = controller.Run(ctx, c)
	}()
	r.Cleanup(out.stop)
	return out
}

// stop ends the run in order.
func (c *run) stop() {
	c.cancel()
	select {
	case <-c.ended:
	case <-time.After(patient):
		c.rig.Error("the controller does not end")
		return
	}
	if c.err != nil {
		c.rig.Errorf("the controller ended with %v", c.err)
	}
}

// metric sums a metric over those of its labels that are not given.
func (c *run) metric(name string, labels map[string]string) float64 {
	families, err := c.registry.Gather()
	if err != nil {
		c.rig.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			if matches(m, labels) {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

func matches(m *dto.Metric, labels map[string]string) bool {
	found := 0
	for _, l := range m.GetLabel() {
		if want, ok := labels[l.GetName()]; ok && want == l.GetValue() {
			found++
		}
	}
	return found == len(labels)
}

// wrapped puts a transport around the controller's.
func wrapped(wrap func(http.RoundTripper) http.RoundTripper) func(*controller.Config) {
	return func(c *controller.Config) { c.Wrap = wrap }
}

func (r *rig) watchPods() *witness.Witness {
	r.Helper()
	return witness.Watch(r.T, r.kube.CoreV1().Pods(r.ns))
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
	r.eventually("edit "+name, func() string {
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
	r.eventually(name+" settles", func() string {
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
	list, err := r.kube.CoreV1().Pods(r.ns).List(r.Context(), metav1.ListOptions{})
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
	list, err := r.kube.CoreV1().Events(r.ns).List(r.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=TApp,reason=" + reason})
	if err != nil {
		r.Fatal(err)
	}
	var out []string
	for _, e := range list.Items {
		out = append(out, e.Message)
	}
	return out
}
