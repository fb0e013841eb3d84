package fleet

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// TestCharts: an archive is stored once, and says when it was kept last. Keeping it comes
// before a deletion that was decided on earlier.
func TestCharts(t *testing.T) {
	member := newServer(t, "1")
	r := newRig(t, newServer(t, "hub"), func(o *Options) { o.ChartNamespace = v1beta1.DefaultChartNamespace })
	r.register("m", member.kubeconfig("x"))
	r.until("ready", r.state("m", v1beta1.ClusterReady, ""))
	carrier, err := r.Carrier("m")
	if err != nil {
		t.Fatal(err)
	}
	const key = "secrets/" + v1beta1.DefaultChartNamespace + "/tapp-chart-1"
	keep := func(fleet, at string) {
		t.Helper()
		chart := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Name: "tapp-chart-1", Labels: map[string]string{v1beta1.LabelChart: "true", v1beta1.LabelFleetID: fleet},
				Annotations: map[string]string{v1beta1.AnnotationChartKept: at},
			},
			Data: map[string][]byte{v1beta1.KeyChart: []byte("bytes")},
		}
		if err := carrier.KeepChart(t.Context(), chart); err != nil {
			t.Fatal(err)
		}
		if is := member.annotation(key, v1beta1.AnnotationChartKept); is != at {
			t.Errorf("the archive was kept at %q, want %q", is, at)
		}
	}
	heads := func() []metav1.PartialObjectMetadata {
		t.Helper()
		list, err := carrier.Charts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	const creations = "POST /api/v1/namespaces/" + v1beta1.DefaultChartNamespace + "/secrets"
	keep("another", "2026-01-01T00:00:00Z")
	if list := heads(); len(list) > 0 {
		t.Errorf("another fleet's archives are ours: %v", list)
	}
	keep("hub", "2026-01-01T01:00:00Z")
	seen := heads()
	if len(seen) != 1 || member.count(creations) != 1 {
		t.Fatalf("%d archives, after %d creations", len(seen), member.count(creations))
	}
	keep("hub", "2026-01-01T02:00:00Z")
	if err := carrier.DropChart(t.Context(), &seen[0]); !apierrors.IsConflict(err) {
		t.Errorf("dropping what was kept meanwhile: %v", err)
	}
	now := heads()
	if err := carrier.DropChart(t.Context(), &now[0]); err != nil || len(heads()) > 0 {
		t.Errorf("dropping it: %v; there is %v", err, heads())
	}
	if err := carrier.DropChart(t.Context(), &now[0]); err != nil {
		t.Errorf("dropping what is gone: %v", err)
	}
	keep("hub", "2026-01-01T03:00:00Z")
	if member.count(creations) != 2 {
		t.Errorf("%d creations, want 2", member.count(creations))
	}
}
