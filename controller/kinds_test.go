package controller

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"tkestack.io/tapp/controller/loop"
)

// widgets is a controller that does the least: it syncs each object once.
type widgets struct {
	prometheus.Collector
	informer cache.SharedIndexInformer
	loop     *loop.Loop
}

// widgetKind is the row of a further kind.
func widgetKind() kind {
	crd := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.org"},
	}
	return kind{
		name: "widget",
		crds: func() ([]*apiextensionsv1.CustomResourceDefinition, error) {
			return []*apiextensionsv1.CustomResourceDefinition{crd}, nil
		},
		newController: newWidgets,
	}
}

func newWidgets(s setup) (kindController, error) {
	client, err := dynamic.NewForConfig(s.api.watches)
	if err != nil {
		return nil, err
	}
	resource := schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "widgets"}
	informer := dynamicinformer.NewFilteredDynamicInformer(client, resource, s.config.Namespace, 0, nil, nil).Informer()
	return &widgets{
		informer: informer,
		Collector: prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "widgets"}, func() float64 {
			return float64(len(informer.GetStore().ListKeys()))
		}),
		loop: &loop.Loop{
			Name: "widget", Workers: s.config.Workers, Clock: clock.RealClock{}, Metrics: s.queue,
			Sync: func(context.Context, loop.Key) (loop.Result, error) { return loop.Result{}, nil },
			Seed: func() (keys []loop.Key) {
				for _, name := range informer.GetStore().ListKeys() {
					keys = append(keys, loop.Key{Name: name})
				}
				return keys
			},
		},
	}, nil
}

func (w *widgets) Watch(ctx context.Context)     { w.informer.RunWithContext(ctx) }
func (w *widgets) HasSynced() bool               { return w.informer.HasSynced() }
func (w *widgets) Run(ctx, work context.Context) { w.loop.Run(ctx, work) }

// TestAnotherKind: a kind is a row of the table and a controller. Its CRD is applied,
// its cache is filled on a standby too, which is ready only then, it works on the leader
// alone, and it is measured.
func TestAnotherKind(t *testing.T) {
	api := newFakeAPI(t)
	api.answer("get customresourcedefinitions", `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","status":{"conditions":[{"type":"Established","status":"True"}]}}`)
	api.answer("list widgets", waits)
	lease := func(holder string) string {
		return `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"tapp-controller","namespace":"ns"},"spec":{"holderIdentity":"` + holder +
			`","leaseDurationSeconds":3600,"renewTime":"2026-01-01T00:00:00.000000Z"}}`
	}
	api.answer("get leases", lease("another replica"))

	c := Defaults()
	c.kinds = append(c.kinds, widgetKind())
	registry := prometheus.NewRegistry()
	c.Controllers, c.REST, c.Registry = []string{"widget"}, &rest.Config{Host: api.URL}, registry
	c.Election.Namespace, c.Election.RetryPeriod = "ns", 20*time.Millisecond
	replica, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- replica.Run(ctx) }()
	eventually := func(what string, f func() bool) {
		t.Helper()
		if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			if len(ended) > 0 {
				t.Fatalf("it ended with %v", <-ended)
			}
			return f(), nil
		}); err != nil {
			t.Fatalf("not in time: %s; requests %q", what, api.requests())
		}
	}

	eventually("it is watched", func() bool { return api.count("list widgets") > 0 })
	if got := api.requests()[0]; got != "patch customresourcedefinitions" {
		t.Errorf("the first request was %q, want its CRD's", got)
	}
	if err := replica.Ready(); err == nil || err.Error() != "the caches are not filled yet: those of widget" {
		t.Errorf("without its cache it says %v", err)
	}
	other := *replica
	other.config.CreateCRD = false
	if err := other.Ready(); err == nil || !strings.HasPrefix(err.Error(), "the caches are not filled yet: those of widget. If this stays: are the CustomResourceDefinitions installed?") {
		t.Errorf("without its cache, and without making CRDs, it says %v", err)
	}
	api.answer("list widgets", `{"apiVersion":"example.org/v1","kind":"WidgetList","metadata":{"resourceVersion":"1"},"items":[{"apiVersion":"example.org/v1","kind":"Widget","metadata":{"name":"a"}}]}`)
	eventually("the standby is ready", func() bool { return replica.Ready() == nil })
	eventually("it stands for election", func() bool { return api.count("get leases") > 2 })
	if n := testutil.CollectAndCount(registry, "tapp_sync_duration_seconds"); n != 0 {
		t.Errorf("it works although another replica has the Lease: %d series", n)
	}
	api.answer("get leases", lease(""))
	eventually("it works", func() bool {
		return testutil.CollectAndCount(registry, "tapp_sync_duration_seconds") == 1
	})
	if err := testutil.GatherAndCompare(registry, strings.NewReader("# HELP widgets \n# TYPE widgets gauge\nwidgets 1\n"), "widgets"); err != nil {
		t.Error(err)
	}
	if found, ok := Find[*widgets](replica); !ok || found.loop.Name != "widget" {
		t.Errorf("found %v, %v, want its controller", found, ok)
	}
	if _, ok := Find[*tapps](replica); ok {
		t.Error("found the controller of a kind that is not enabled")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// TestChartValues: what turns a kind on exists, and the chart names each kind to the
// program.
func TestChartValues(t *testing.T) {
	text, err := os.ReadFile("../chart/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	for _, k := range allKinds() {
		if k.chartValues == "" {
			continue
		}
		var at any = values
		for field := range strings.SplitSeq(k.chartValues+".enabled", ".") {
			fields, _ := at.(map[string]any)
			at = fields[field]
		}
		if enabled, ok := at.(bool); !ok || enabled {
			t.Errorf("kind %s: the chart's %s.enabled is %v, want false", k.name, k.chartValues, at)
		}
	}
}
