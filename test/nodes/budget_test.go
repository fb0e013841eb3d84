//go:build cluster

package nodes

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"tkestack.io/tapp/test/gen"
)

// A PodDisruptionBudget on the pods of a TApp counts by the subresource scale, and
// guards them from evictions. A killed instance is one that is missing to it.
func TestDisruptionBudget(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.create(gen.TApp("web", gen.Replicas(2), gen.Default(gen.Probe(), on(refuge))))
	_, err := r.Kube.PolicyV1().PodDisruptionBudgets(r.NS).Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: new(intstr.FromInt32(1)),
			Selector:       &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r.budgetIs(2, 2, 1)

	first, second := r.Pods()["web-0"], r.Pods()["web-1"]
	r.post(second, "/unready")
	r.budgetIs(2, 1, 0)
	if err := r.evict(first.Name); !apierrors.IsTooManyRequests(err) {
		t.Errorf("evicted while the budget is spent: %v", err)
	}
	r.post(second, "/ready")
	r.budgetIs(2, 2, 1)
	if err := r.evict(first.Name); err != nil {
		t.Errorf("evict: %v", err)
	}
	r.podIs(first.Name, "is back", func(p *corev1.Pod) bool { return p.UID != first.UID && isReady(p) })
	if p := r.Pods()[second.Name]; p == nil || p.UID != second.UID {
		t.Errorf("the other pod was replaced: %v", p)
	}

	r.Kubectl("scale", "tapp/web", "--replicas=3")
	r.WaitReady("web")
	r.budgetIs(3, 3, 1)
	r.Change("web", gen.Killed(2))
	r.budgetIs(3, 2, 0)
	if err := r.evict(second.Name); !apierrors.IsTooManyRequests(err) {
		t.Errorf("evicted while the budget is spent: %v", err)
	}
	r.Kubectl("scale", "tapp/web", "--replicas=2", "--current-replicas=3")
	r.budgetIs(2, 2, 1)
	if p := r.Pods()[second.Name]; p == nil || p.UID != second.UID {
		t.Errorf("scaling replaced a pod: %v", p)
	}
}

// budgetIs waits until the budget counts so.
func (r *rig) budgetIs(expected, healthy, allowed int32) {
	r.Helper()
	r.Eventually(fmt.Sprintf("the budget allows %d", allowed), func(ctx context.Context) error {
		b, err := r.Kube.PolicyV1().PodDisruptionBudgets(r.NS).Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if s := b.Status; s.ExpectedPods != expected || s.CurrentHealthy != healthy || s.DisruptionsAllowed != allowed || s.ObservedGeneration != b.Generation {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
}

func (r *rig) evict(pod string) error {
	return r.Kube.PolicyV1().Evictions(r.NS).Evict(r.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: r.NS}})
}

// post tells the demo server in a pod something.
func (r *rig) post(p *corev1.Pod, path string) {
	r.Helper()
	request, err := http.NewRequestWithContext(r.Context(), http.MethodPost, fmt.Sprintf("http://%s:%d%s", p.Status.PodIP, gen.DemoPort, path), nil)
	if err != nil {
		r.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		r.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		r.Fatalf("%s: %s", path, response.Status)
	}
}
