//go:build cluster

package shell

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/gen"
)

// TestNamespaceGoes: the pods of a namespace that is being deleted go one by one, and none
// of them has the next one tried again and again.
func TestNamespaceGoes(t *testing.T) {
	t.Parallel()
	const n = 30
	var r *rig
	finalizers := func(ctx context.Context, list string) error {
		_, err := r.Kube.CoreV1().Pods(r.NS).Patch(ctx, "a-0", types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"finalizers":%s}}`, list), metav1.PatchOptions{})
		return err
	}
	t.Cleanup(func() { // after the rig's
		if err := finalizers(context.Background(), "null"); err != nil {
			t.Error(err)
		}
	})
	r = newRig(t)
	c := r.start()
	r.Create(app("a", gen.Replicas(n)))
	r.WaitReady("a")
	// Where pods go before what owns them, the TApp stays while this one does.
	if err := finalizers(t.Context(), `["example.com/stays"]`); err != nil {
		t.Fatal(err)
	}
	if err := r.Kube.CoreV1().Namespaces().Delete(t.Context(), r.NS, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.Eventually("the other pods go", func(context.Context) error {
		if left := len(r.Pods()); left != 1 {
			return fmt.Errorf("%d are left", left)
		}
		return nil
	})
	for i := range 200 { // events
		if _, err := r.Kube.CoreV1().Pods(r.NS).Patch(t.Context(), "a-0", types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"i":"%d"}}}`, i), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	refused := map[string]string{"verb": "create", "code": "403"}
	if r.ordered() {
		tapp, err := r.TApps.Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil || tapp.DeletionTimestamp != nil {
			t.Fatalf("the TApp should be there: %v", err)
		}
		r.Eventually("it was told that the namespace goes", func(context.Context) error {
			return cluster.When(c.Metric("tapp_api_requests_total", refused) == 0, "not yet")
		})
	}
	if tries := c.Metric("tapp_api_requests_total", refused); tries > n {
		t.Errorf("%v tries to create something, want no more than one for each instance", tries)
	}
}

// ordered says whether pods go before all else when a namespace is deleted, as they do from
// Kubernetes 1.33 on.
func (r *rig) ordered() bool {
	r.Helper()
	version, err := r.Kube.Discovery().ServerVersion()
	if err != nil {
		r.Fatal(err)
	}
	minor, err := strconv.Atoi(strings.TrimRight(version.Minor, "+"))
	if err != nil {
		r.Fatal(err)
	}
	return minor >= 33
}
