package appset

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"tkestack.io/tapp/crd/workload/v1beta1"
	plan "tkestack.io/tapp/plan/appset"
	"tkestack.io/tapp/plan/podset"
	"tkestack.io/tapp/plan/release"
)

// keepCharts makes sure that a cluster has the archives that a part needs, before it has
// the part.
func (c *Controller) keepCharts(ctx context.Context, carrier Carrier, a *plan.Action) error {
	fields, ok := a.Manifest["spec"].(map[string]any)
	if !ok {
		return nil
	}
	part := &v1beta1.AdvDeployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &part.Spec); err != nil {
		return fmt.Errorf("reading what the part needs: %w", err)
	}
	for _, digest := range plan.Digests(part) {
		if c.charts.has(a.Cluster, digest, c.Clock.Now()) {
			continue
		}
		stored, err := c.Charts.Get(ctx, (&podset.Chart{Digest: digest}).SecretName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			c.charts.forget()
		}
		if err != nil {
			return fmt.Errorf("reading the archive of a chart: %w", err)
		}
		archive := c.secretOf(digest, stored.Data[v1beta1.KeyChart], nil)
		archive.Annotations = map[string]string{v1beta1.AnnotationChartKept: c.Clock.Now().UTC().Format(time.RFC3339)}
		if err := carrier.KeepChart(ctx, archive); err != nil {
			return fmt.Errorf("writing the archive of a chart: %w", err)
		}
		c.charts.keep(a.Cluster, digest, c.Clock.Now())
	}
	return nil
}

func (s *charts) has(cluster, digest string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	since, known := s.kept[cluster][digest]
	return known && now.Sub(since) < chartTrust
}

func (s *charts) keep(cluster, digest string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		s.kept = map[string]map[string]time.Time{}
	}
	if s.kept[cluster] == nil {
		s.kept[cluster] = map[string]time.Time{}
	}
	s.kept[cluster][digest] = now
}

// missed forgets that clusters have an archive whose controllers report that it is missing.
// It is then written again.
func (c *Controller) missed(v *view) {
	for name, one := range v.clusters {
		if !one.Certain || !v.hasPart(name) {
			continue
		}
		stalled := meta.FindStatusCondition(v.part(name).Status.Conditions, v1beta1.ConditionStalled)
		if stalled != nil && stalled.Status == metav1.ConditionTrue && stalled.Reason == release.ReasonChart {
			c.charts.mu.Lock()
			delete(c.charts.kept, name)
			c.charts.mu.Unlock()
		}
	}
}
