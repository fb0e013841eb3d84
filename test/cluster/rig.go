package cluster

import (
	"context"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/client"
	"tkestack.io/tapp/test/audit"
)

// Rig is a test's namespace, and what the test does in it.
type Rig struct {
	*testing.T
	*Cluster
	NS    string
	TApps client.TAppInterface
	Apps  client.AppInterface
}

// New makes a namespace for a test of a suite, which is named after the test and goes
// when the test ends. It returns when pods can be created in it.
func New(t *testing.T, suite string, edits ...func(*corev1.Namespace)) *Rig {
	t.Helper()
	c, err := Connect(suite + "-test")
	if err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: nameOf(t) + "-"}}
	for _, edit := range edits {
		edit(ns)
	}
	if ns, err = c.Kube.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create a namespace: %v", err)
	}
	r := c.In(t, ns.Name)
	t.Cleanup(r.leave)
	// Without it the API server takes no pod.
	r.Eventually("the namespace has its service account", func(ctx context.Context) error {
		_, err := c.Kube.CoreV1().ServiceAccounts(r.NS).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	return r
}

// In is the rig of a test in a namespace that there is already, and that stays.
func (c *Cluster) In(t *testing.T, namespace string) *Rig {
	return &Rig{T: t, Cluster: c, NS: namespace, TApps: c.TApps(namespace), Apps: c.Apps(namespace)}
}

// Labels gives them to the namespace.
func Labels(labels map[string]string) func(*corev1.Namespace) {
	return func(ns *corev1.Namespace) { ns.Labels = labels }
}

// Name gives the namespace a name that it has to have.
func Name(name string) func(*corev1.Namespace) {
	return func(ns *corev1.Namespace) { ns.Name = name }
}

// nameOf a test, as a label may be.
func nameOf(t *testing.T) string {
	name := strings.Map(func(c rune) rune {
		if 'a' <= c && c <= 'z' || '0' <= c && c <= '9' {
			return c
		}
		return '-'
	}, strings.TrimPrefix(strings.ToLower(t.Name()), "test"))
	return strings.Trim(name[:min(len(name), 40)], "-")
}

// leave removes the namespace, which is not waited for. If the test failed, what is in
// it is printed first; with TAPP_KEEP in the environment it stays then.
func (r *Rig) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second) // the test's has ended
	defer cancel()
	if r.Failed() {
		r.Log(r.Describe(ctx, r.NS))
		if os.Getenv("TAPP_KEEP") != "" {
			return
		}
	}
	if err := r.Kube.CoreV1().Namespaces().Delete(ctx, r.NS, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		r.Errorf("delete namespace %s: %v", r.NS, err)
	}
}

// ForceDeletePods has the pods go by force when the test ends, before their namespace: on
// simulated nodes nothing runs that could be left behind.
func (r *Rig) ForceDeletePods() {
	r.Cleanup(func() {
		now := int64(0)
		if err := r.Kube.CoreV1().Pods(r.NS).DeleteCollection(context.Background(), metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{}); err != nil {
			r.Error(err)
		}
	})
}

// Eventually waits until check returns nil. What check said last is what the test fails
// with.
func (r *Rig) Eventually(what string, check func(context.Context) error) {
	r.Helper()
	Eventually(r.T, what, check)
}

// Never fails as soon as check does, and ends well when the time has passed.
func (r *Rig) Never(during time.Duration, what string, check func(context.Context) error) {
	r.Helper()
	Never(r.T, during, what, check)
}

// Kubectl runs the real kubectl in the namespace, which must succeed, and returns all
// that it prints.
func (r *Rig) Kubectl(args ...string) string {
	r.Helper()
	return r.KubectlWith("", args...)
}

// KubectlWith is Kubectl with an input.
func (r *Rig) KubectlWith(input string, args ...string) string {
	r.Helper()
	out, err := r.TryKubectlWith(input, args...)
	if err != nil {
		r.Fatalf("%v: %s", err, out)
	}
	return out
}

// TryKubectl is Kubectl that may fail.
func (r *Rig) TryKubectl(args ...string) (string, error) { return r.TryKubectlWith("", args...) }

// TryKubectlWith is KubectlWith that may fail.
func (r *Rig) TryKubectlWith(input string, args ...string) (string, error) {
	// Not the test's context, which ends before its cleanups.
	return r.Command(context.WithoutCancel(r.Context()), input, "kubectl", append([]string{"--namespace", r.NS}, args...)...)
}

// Devcluster runs a command of the program that started the cluster, which must succeed.
func (r *Rig) Devcluster(args ...string) string {
	r.Helper()
	out, err := r.Cluster.Devcluster(context.WithoutCancel(r.Context()), args...)
	if err != nil {
		r.Fatalf("%v: %s", err, out)
	}
	return out
}

// Freeze a component of the cluster, which keeps its connections and answers nothing; what this
// returns lets it go on, as the test's end does.
func (r *Rig) Freeze(component string) (thaw func()) {
	r.Helper()
	status := r.Devcluster("status")
	m := regexp.MustCompile(`(?m)^` + component + ` +runs, process (\d+)$`).FindStringSubmatch(status)
	if m == nil {
		r.Fatalf("%s does not run:\n%s", component, status)
	}
	pid, err := strconv.Atoi(m[1])
	if err != nil {
		r.Fatal(err)
	}
	send := func(s syscall.Signal) {
		r.Helper()
		if err := syscall.Kill(pid, s); err != nil {
			r.Errorf("signal %v to %s: %v", s, component, err)
		}
	}
	r.Cleanup(func() { send(syscall.SIGCONT) })
	send(syscall.SIGSTOP)
	return func() { r.Helper(); send(syscall.SIGCONT) }
}

// FollowAudit follows the audit log from now on.
func (r *Rig) FollowAudit() *audit.Log {
	r.Helper()
	log, err := r.Cluster.FollowAudit()
	if err != nil {
		r.Fatal(err)
	}
	return log
}

// Requests that the API server has answered since the last call.
func (r *Rig) Requests(log *audit.Log, filter audit.Filter) []audit.Request {
	r.Helper()
	all, err := log.Read()
	if err != nil {
		r.Fatal(err)
	}
	return audit.Select(all, filter)
}
