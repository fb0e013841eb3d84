package appset

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/crd/workload/v1beta1"
	plan "tkestack.io/tapp/plan/appset"
	"tkestack.io/tapp/plan/podset"
)

const (
	// chartRetry is after how long a chart that could not be fetched is fetched again.
	chartRetry = 30 * time.Second
	// chartTrust is how long a cluster counts as having an archive without another look.
	chartTrust = 10 * time.Minute
	// maxSources is how many places of one archive are remembered.
	maxSources = 64
)

// charts remembers which archive each place was fetched as. A place is fetched once, so that
// all clusters get the same archive, even if somebody publishes the version again.
type charts struct {
	mu lock
	// places and digests of the archives; nil: not listed yet.
	places map[string]string
	stored map[string]time.Time
	failed map[string]failedChart
	// kept is when each cluster was last seen to have an archive.
	kept map[string]map[string]time.Time
}

// lock is a mutex that may be held while requests are under way. It is a channel, since
// testing/synctest does not see that a goroutine waits for a sync.Mutex.
type lock chan struct{}

func (l lock) Lock()   { l <- struct{}{} }
func (l lock) Unlock() { <-l }

type failedChart struct {
	why   string
	until time.Time
}

// source is a place in the annotation of a Secret.
type source struct {
	URL     string `json:"url"`
	Version string `json:"version,omitempty"`
}

func failed(charts map[string]plan.Chart) bool {
	for _, c := range charts {
		if c.Err != "" {
			return true
		}
	}
	return false
}

// chartsOf stores the charts of an AppSet on the hub, and puts the results into the view.
func (c *Controller) chartsOf(ctx context.Context, v *view) error {
	if v.app == nil || v.app.DeletionTimestamp != nil {
		return nil
	}
	if v.app.Annotations[v1beta1.AnnotationRestoring] != "" {
		return c.relistCharts(ctx)
	}
	raw, places := plan.Charts(v.app)
	if len(raw)+len(places) == 0 {
		return nil
	}
	c.missed(v)
	c.charts.mu.Lock()
	defer c.charts.mu.Unlock()
	if err := c.listCharts(ctx); err != nil {
		return err
	}
	for digest, archive := range raw {
		if err := c.storeChart(ctx, digest, archive, nil); err != nil {
			return err
		}
	}
	v.charts = map[string]plan.Chart{}
	for _, place := range places {
		digest, why, err := c.resolve(ctx, place)
		if err != nil {
			return err
		}
		v.charts[place.Place()] = plan.Chart{Digest: digest, Err: why}
	}
	return nil
}

// relistCharts lists the archives of the hub again. A restore writes the archives of an
// AppSet before the AppSet.
func (c *Controller) relistCharts(ctx context.Context) error {
	c.charts.mu.Lock()
	defer c.charts.mu.Unlock()
	if c.charts.places == nil { // nobody has asked yet
		return nil
	}
	return c.readCharts(ctx)
}

// listCharts reads once which archives the hub has.
func (c *Controller) listCharts(ctx context.Context) error {
	if c.charts.places != nil {
		return nil
	}
	return c.readCharts(ctx)
}

func (c *Controller) readCharts(ctx context.Context) error {
	list, err := c.ChartHeads.List(ctx, metav1.ListOptions{LabelSelector: v1beta1.LabelChart})
	if err != nil {
		return fmt.Errorf("reading the archives of charts: %w", err)
	}
	places, stored := map[string]string{}, map[string]time.Time{}
	// If two archives name one place, the older archive counts.
	slices.SortFunc(list.Items, func(a, b metav1.PartialObjectMetadata) int {
		return b.CreationTimestamp.Compare(a.CreationTimestamp.Time)
	})
	for i := range list.Items {
		s := &list.Items[i]
		digest := podset.DigestIn(&corev1.LocalObjectReference{Name: s.Name})
		if digest == "" {
			continue
		}
		stored[digest] = c.Clock.Now()
		for _, place := range sourcesOf(s) {
			places[(&podset.Chart{URL: place.URL, Version: place.Version}).Place()] = digest
		}
	}
	c.charts.places, c.charts.stored = places, stored
	c.charts.failed, c.charts.kept = map[string]failedChart{}, map[string]map[string]time.Time{}
	return nil
}

func sourcesOf(s metav1.Object) (out []source) {
	if err := json.Unmarshal([]byte(s.GetAnnotations()[v1beta1.AnnotationChartSources]), &out); err != nil {
		return nil
	}
	return out
}

// resolve a place to an archive that is stored. why: it could not be fetched.
func (c *Controller) resolve(ctx context.Context, place podset.Chart) (digest, why string, err error) {
	if digest, known := c.charts.places[place.Place()]; known {
		return digest, "", nil
	}
	if f, known := c.charts.failed[place.Place()]; known && c.Clock.Now().Before(f.until) {
		return "", f.why, nil
	}
	if c.Fetch == nil {
		return "", "this controller fetches no charts: give rawChart", nil
	}
	// The lock is not held during the fetch: repositories may be slow.
	c.charts.mu.Unlock()
	archive, fetchErr := c.Fetch(ctx, place.URL, place.Version)
	c.charts.mu.Lock()
	if ctx.Err() != nil {
		return "", "", context.Cause(ctx)
	}
	if digest, known := c.charts.places[place.Place()]; known { // another sync has fetched it meanwhile
		return digest, "", nil
	}
	if fetchErr != nil {
		c.charts.failed[place.Place()] = failedChart{fetchErr.Error(), c.Clock.Now().Add(chartRetry - time.Second)}
		return "", fetchErr.Error(), nil
	}
	digest = podset.DigestOf(archive)
	if err := c.storeChart(ctx, digest, archive, &source{place.URL, place.Version}); err != nil {
		return "", "", err
	}
	delete(c.charts.failed, place.Place())
	c.charts.places[place.Place()] = digest
	klog.FromContext(ctx).Info("Fetched a chart", "url", place.URL, "version", place.Version, "digest", digest)
	return digest, "", nil
}

// secretOf an archive.
func (c *Controller) secretOf(digest string, archive []byte, sources []source) *corev1.Secret {
	chart := podset.Chart{Digest: digest}
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: chart.SecretName(), Labels: map[string]string{v1beta1.LabelChart: "true", v1beta1.LabelFleetID: c.FleetID()}},
		Immutable:  new(true), Data: map[string][]byte{v1beta1.KeyChart: archive},
	}
	if len(sources) > 0 {
		text, _ := json.Marshal(sources) // texts always marshal
		s.Annotations = map[string]string{v1beta1.AnnotationChartSources: string(text)}
	}
	return s
}

// storeChart stores an archive on the hub, with the place that it was fetched from.
func (c *Controller) storeChart(ctx context.Context, digest string, archive []byte, from *source) error {
	_, stored := c.charts.stored[digest]
	if stored && from == nil {
		c.charts.stored[digest] = c.Clock.Now()
		return nil
	}
	var sources []source
	if from != nil {
		sources = []source{*from}
	}
	s := c.secretOf(digest, archive, sources)
	_, err := c.Charts.Create(ctx, s, metav1.CreateOptions{FieldManager: v1beta1.Component})
	if apierrors.IsAlreadyExists(err) && from != nil {
		err = c.addSource(ctx, s.Name, *from)
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("storing the archive of a chart: %w", err)
	}
	c.charts.stored[digest] = c.Clock.Now()
	return nil
}

// addSource notes another place of an archive.
func (c *Controller) addSource(ctx context.Context, name string, from source) error {
	s, err := c.Charts.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	sources := sourcesOf(s)
	if slices.Contains(sources, from) || len(sources) >= maxSources {
		return nil
	}
	text, _ := json.Marshal(append(sources, from)) // texts always marshal
	patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": s.ResourceVersion, "annotations": map[string]string{v1beta1.AnnotationChartSources: string(text)}}})
	_, err = c.Charts.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: v1beta1.Component})
	return err
}

// forget makes the next sync list the archives of the hub again.
func (s *charts) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places = nil
}
