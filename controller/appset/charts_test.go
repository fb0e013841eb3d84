package appset

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
)

// repository is where the hub fetches charts.
type repository struct {
	archive string
	err     error
	fetched []string
}

func (r *repository) fetch(_ context.Context, url, version string) ([]byte, error) {
	r.fetched = append(r.fetched, url+" "+version)
	return []byte(r.archive), r.err
}

// charted has the controller store charts, and fetch them from a repository.
func (w *world) charted(r *repository) corev1client.SecretInterface {
	stored := fake.NewClientset().CoreV1().Secrets("tapp-charts")
	w.Charts, w.ChartHeads, w.Fetch = stored, heads{secrets: stored}, r.fetch
	return stored
}

// TestFetchedOnce: the hub resolves a chart once, and all clusters have its bytes before their
// parts, also where the version is published anew, and by a new leader.
func TestFetchedOnce(t *testing.T) {
	w := newWorld(t, "one", "two")
	r := &repository{archive: "first"}
	w.app.Spec.PodSpec = v1beta1.PodSpec{DeployType: "helm", Chart: &v1beta1.ChartSpec{ChartURL: &v1beta1.ChartURL{URL: "stable/web", ChartVersion: "1.x"}}}
	stored := w.charted(r)
	name := v1beta1.ChartSecretPrefix + podset.DigestOf([]byte("first"))
	for _, m := range w.members {
		m.fails = func(op string) error {
			if op == "Apply" && m.charts[name] == nil {
				t.Errorf("%s has its part before its chart", m.Name)
			}
			return nil
		}
	}
	w.must()
	for _, m := range w.members {
		if m.live == nil || m.live.Spec.Topology.PodSets[0].Chart.SecretRef.Name != name || string(m.charts[name].Data[v1beta1.KeyChart]) != "first" {
			t.Fatalf("%s has %+v, and charts %v", m.Name, m.live, m.charts)
		}
	}
	s, err := stored.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil || !*s.Immutable || s.Annotations[v1beta1.AnnotationChartSources] != `[{"url":"stable/web","version":"1.x"}]` {
		t.Errorf("the hub has %+v, %v", s, err)
	}

	r.archive = "published anew"
	w.catchUp()
	w.must()
	w.lead()
	w.Charts, w.ChartHeads, w.Fetch = stored, heads{secrets: stored}, r.fetch
	w.must()
	for _, m := range w.members {
		if m.live.Spec.Topology.PodSets[0].Chart.SecretRef.Name != name || len(m.charts) != 1 {
			t.Errorf("%s has other bytes: %v", m.Name, m.charts)
		}
	}
	if len(r.fetched) != 1 || r.fetched[0] != "stable/web 1.x" {
		t.Errorf("fetched %q", r.fetched)
	}
}

// TestChartThatCannotBeHad: it is told, asked for again after half a minute and not before,
// and no cluster gets a part without it.
func TestChartThatCannotBeHad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "one", "two")
		r := &repository{err: errors.New("chart stable/web: the server says 503")}
		w.app.Spec.PodSpec = v1beta1.PodSpec{DeployType: "helm", Chart: &v1beta1.ChartSpec{ChartURL: &v1beta1.ChartURL{URL: "stable/web"}}}
		w.charted(r)
		w.must()
		result := w.must()
		stalled := meta.FindStatusCondition(w.app.Status.Conditions, v1beta1.ConditionStalled)
		if stalled == nil || stalled.Reason != "ChartError" || len(r.fetched) != 1 || result.After <= 0 || result.After > chartRetry {
			t.Errorf("it says %+v, after %d requests, and comes again after %s", stalled, len(r.fetched), result.After)
		}
		for _, m := range w.members {
			if m.live != nil && len(m.live.Spec.Topology.PodSets) > 0 {
				t.Errorf("%s has %+v", m.Name, m.live.Spec.Topology)
			}
		}
		time.Sleep(chartRetry)
		r.archive, r.err = "first", nil
		w.catchUp()
		w.must()
		if len(r.fetched) != 2 {
			t.Errorf("fetched %q", r.fetched)
		}
		one, two := w.members["one"], w.members["two"]
		if one.live == nil || one.live.Spec.Topology.PodSets[0].Chart.SecretRef == nil || len(one.charts) != 1 {
			t.Errorf("one has %+v, charts %v", one.live, one.charts)
		}
		// It is not its turn yet; above all it has no chart that only names a place.
		if two.live != nil {
			t.Errorf("two has %+v", two.live.Spec.Topology)
		}
	})
}
