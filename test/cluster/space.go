package cluster

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Space is a test's namespace, which goes when the test ends.
type Space struct {
	*testing.T
	*Cluster
	NS string
}

// NewSpace makes a namespace for a test of a suite, whose name tells of both. It
// returns when pods can be created in it.
func NewSpace(t *testing.T, suite string) *Space {
	t.Helper()
	return space(t, suite, metav1.ObjectMeta{GenerateName: suite + "-"})
}

// NewNamedSpace does so with a given name.
func NewNamedSpace(t *testing.T, suite, name string) *Space {
	t.Helper()
	return space(t, suite, metav1.ObjectMeta{Name: name})
}

func space(t *testing.T, suite string, meta metav1.ObjectMeta) *Space {
	t.Helper()
	c, err := Connect(suite + "-test")
	if err != nil {
		t.Fatal(err)
	}
	ns, err := c.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: meta}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := &Space{T: t, Cluster: c, NS: ns.Name}
	t.Cleanup(func() {
		if err := c.Kube.CoreV1().Namespaces().Delete(context.Background(), s.NS, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	// Without it the API server takes no pod.
	s.Eventually("the namespace has its service account", func() string {
		_, err := c.Kube.CoreV1().ServiceAccounts(s.NS).Get(t.Context(), "default", metav1.GetOptions{})
		return Words(err)
	})
	return s
}

// Forceful has the pods go by force when the test ends, before their namespace: on
// simulated nodes nothing runs that could be left behind.
func (s *Space) Forceful() {
	s.Cleanup(func() {
		now := int64(0)
		if err := s.Kube.CoreV1().Pods(s.NS).DeleteCollection(context.Background(), metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{}); err != nil {
			s.Error(err)
		}
	})
}

// Eventually waits until a condition holds; it returns what is missing, or "".
func (s *Space) Eventually(what string, missing func() string) {
	s.Helper()
	Eventually(s.T, what, missing)
}

// Eventually waits until a condition holds; it returns what is missing, or "".
func Eventually(t *testing.T, what string, missing func() string) {
	t.Helper()
	var m string
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, Patience, true, func(context.Context) (bool, error) {
		m = missing()
		return m == "", nil
	})
	if err != nil {
		t.Fatalf("%s: %s", what, m)
	}
}

// Words of an error, as a condition returns them.
func Words(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}
