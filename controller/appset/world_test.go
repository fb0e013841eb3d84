package appset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"tkestack.io/tapp/controller/loop"
	"tkestack.io/tapp/crd/client"
	"tkestack.io/tapp/crd/workload/v1beta1"
)

const web = `
apiVersion: workload.dmall.com/v1beta1
kind: AppSet
metadata: {name: web, namespace: shop, uid: web-1, generation: 1, resourceVersion: "10"}
spec:
  podSpec: {deployType: tapp, template: {spec: {containers: [{name: web, image: nginx}]}}}
  clusterTopology:
    clusters:
    - {name: one, podSets: [{name: web-a, replicas: 2, version: v1}]}
    - {name: two, podSets: [{name: web-a, replicas: 3, version: v1}]}
`

var key = loop.Key{Namespace: "shop", Name: "web"}

// hub answers in the place of an API server with one AppSet, and ConfigMaps. What a real
// one does is tested in test/fleet.
type hub struct {
	mu       sync.Mutex
	version  int
	app      *v1beta1.AppSet
	configs  map[string]*corev1.ConfigMap
	records  map[string]*appsv1.ControllerRevision
	wrote    []string
	conflict bool // of the next patch
	told     []string
}

func (h *hub) RoundTrip(r *http.Request) (*http.Response, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	code, object := h.answer(r, body)
	data, err := json.Marshal(object)
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(data)), Request: r}, err
}

func (h *hub) answer(r *http.Request, body []byte) (int, any) {
	failure := func(code int, reason metav1.StatusReason) (int, any) {
		return code, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: "no"}
	}
	name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	switch {
	case strings.Contains(r.URL.Path, "/events"):
		e := &corev1.Event{}
		_ = json.Unmarshal(body, e)
		h.told = append(h.told, e.Reason+" "+e.Message)
		return 201, e
	case strings.Contains(r.URL.Path, "/configmaps"):
		h.wrote = append(h.wrote, r.Method+" configmap")
		m := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}}
		if r.Method == http.MethodDelete {
			delete(h.configs, name)
			return 200, m
		}
		_ = json.Unmarshal(body, m)
		h.version++
		m.UID, m.ResourceVersion = types.UID("config-"+m.Name), fmt.Sprint(h.version)
		h.configs[m.Name] = m
		return 201, m
	case strings.Contains(r.URL.Path, "/controllerrevisions"):
		return h.revision(r, name, body)
	case h.app == nil:
		return failure(404, metav1.StatusReasonNotFound)
	case r.Method != http.MethodPatch:
		return 200, h.app
	case h.conflict:
		h.conflict = false
		return failure(409, metav1.StatusReasonConflict)
	}
	h.wrote = append(h.wrote, "PATCH "+map[bool]string{true: "status", false: "appset"}[name == "status"])
	raw, _ := json.Marshal(h.app)
	raw, err := jsonpatch.MergePatch(raw, body)
	if err != nil {
		return failure(400, metav1.StatusReasonBadRequest)
	}
	app := &v1beta1.AppSet{}
	_ = json.Unmarshal(raw, app)
	h.version++
	app.ResourceVersion = fmt.Sprint(h.version)
	h.app = app
	if app.DeletionTimestamp != nil && len(app.Finalizers) == 0 {
		h.app = nil
	}
	return 200, app
}

// revision answers for one, or lists them.
func (h *hub) revision(r *http.Request, name string, body []byte) (int, any) {
	made := &appsv1.ControllerRevision{TypeMeta: metav1.TypeMeta{Kind: "ControllerRevision", APIVersion: "apps/v1"}}
	switch r.Method {
	case http.MethodGet:
		list := &appsv1.ControllerRevisionList{TypeMeta: metav1.TypeMeta{Kind: "ControllerRevisionList", APIVersion: "apps/v1"}}
		for _, one := range h.records {
			list.Items = append(list.Items, *one)
		}
		return 200, list
	case http.MethodDelete:
		delete(h.records, name)
		return 200, made
	case http.MethodPatch:
		raw, _ := json.Marshal(h.records[name])
		raw, _ = jsonpatch.MergePatch(raw, body)
		_ = json.Unmarshal(raw, made)
	default:
		_ = json.Unmarshal(body, made)
		made.UID = types.UID("revision-" + made.Name)
	}
	h.wrote = append(h.wrote, r.Method+" revision")
	h.version++
	made.ResourceVersion = fmt.Sprint(h.version)
	h.records[made.Name] = made
	return 201, made
}

// took are the writes since the last call.
func (h *hub) took() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := h.wrote
	h.wrote = nil
	return out
}

// world is a hub, its clusters, and a controller of both.
type world struct {
	*testing.T
	*hub
	*clusters
	*Controller
}

func newWorld(t *testing.T, names ...string) *world {
	t.Helper()
	h := &hub{version: 10, app: &v1beta1.AppSet{}, configs: map[string]*corev1.ConfigMap{}, records: map[string]*appsv1.ControllerRevision{}}
	if err := yaml.UnmarshalStrict([]byte(web), h.app); err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, hub: h, clusters: newClusters(names...)}
	w.lead()
	return w
}

// lead has another process take over: it remembers nothing.
func (w *world) lead() {
	cfg := &rest.Config{Host: "http://stub", Transport: w.hub, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}}
	core, err := corev1client.NewForConfig(cfg)
	if err != nil {
		w.Fatal(err)
	}
	appSets, err := client.NewAppSets(cfg)
	if err != nil {
		w.Fatal(err)
	}
	apps, err := appsv1client.NewForConfig(cfg)
	if err != nil {
		w.Fatal(err)
	}
	confirmations, err := client.NewConfirmations(cfg)
	if err != nil {
		w.Fatal(err)
	}
	clients := Clients{AppSets: appSets, ConfigMaps: core, Apps: apps, Confirmations: confirmations}
	w.Controller, err = New(Options{Clients: clients, Watching: clients, Events: core, Fleet: w.clusters, FleetID: func() string { return "hub-1" },
		Tombstones: "tapp", Workers: 1, Host: "host", Metrics: NewMetrics(prometheus.NewRegistry())})
	if err != nil {
		w.Fatal(err)
	}
}

// step has the hub's caches show what it has, and syncs once.
func (w *world) step() (loop.Result, error) {
	w.Helper()
	store := w.appSets.GetStore()
	if w.app == nil {
		_ = store.Replace(nil, fmt.Sprint(w.hub.version))
	} else if err := store.Replace([]any{w.app.DeepCopy()}, fmt.Sprint(w.hub.version)); err != nil {
		w.Fatal(err)
	}
	var graves []any
	for _, m := range w.configs {
		graves = append(graves, m)
	}
	_ = w.tombstones.GetStore().Replace(graves, fmt.Sprint(w.hub.version))
	var revisions []any
	for _, r := range w.records {
		revisions = append(revisions, r)
	}
	_ = w.revisions.GetStore().Replace(revisions, fmt.Sprint(w.hub.version))
	return w.sync(w.Context(), key)
}

// expect the writes to the hub, and the calls to clusters, in their orders.
func (w *world) expect(hub string, calls map[string]string) {
	w.Helper()
	if got := strings.Join(w.took(), ", "); got != hub {
		w.Errorf("wrote %q to the hub, want %q", got, hub)
	}
	for name, m := range w.members {
		if got := strings.Join(m.wrote, ", "); got != calls[name] {
			w.Errorf("did %q in cluster %s, want %q", got, name, calls[name])
		}
		m.wrote = nil
	}
}

func (w *world) must() loop.Result {
	w.Helper()
	result, err := w.step()
	if err != nil {
		w.Fatal(err)
	}
	return result
}

func (w *world) phase() v1beta1.Phase { return w.app.Status.AggrStatus.Status }

// orphans that the metrics tell of.
func (w *world) orphans() float64 {
	w.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(w.Controller)
	families, err := registry.Gather()
	if err != nil {
		w.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "tapp_fleet_orphans" {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return 0
}
