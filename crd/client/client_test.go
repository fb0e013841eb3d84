package client_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"tkestack.io/tapp/crd/client"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

var tapp = tappv1.TApp{
	TypeMeta:   metav1.TypeMeta{APIVersion: "apps.tkestack.io/v1", Kind: "TApp"},
	ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", ResourceVersion: "1", ManagedFields: []metav1.ManagedFieldsEntry{{}}},
}

// newClient is a client of a server that knows one TApp, and refuses what custom
// resources do not speak.
func newClient(t *testing.T) *client.Client {
	t.Helper()
	mux := http.NewServeMux()
	answer := func(v any) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if accept := r.Header.Get("Accept"); accept != runtime.ContentTypeJSON {
				http.Error(w, accept, http.StatusNotAcceptable)
				return
			}
			w.Header().Set("Content-Type", runtime.ContentTypeJSON)
			if r.URL.Query().Has("sendInitialEvents") { // as servers that do not stream lists
				w.WriteHeader(http.StatusUnprocessableEntity)
				return
			}
			if r.URL.Query().Has("watch") {
				w.(http.Flusher).Flush()
				<-r.Context().Done()
				return
			}
			if err := json.NewEncoder(w).Encode(v); err != nil {
				t.Error(err)
			}
		}
	}
	list := tappv1.TAppList{TypeMeta: metav1.TypeMeta{APIVersion: "apps.tkestack.io/v1", Kind: "TAppList"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []tappv1.TApp{tapp}}
	scale := autoscalingv1.Scale{TypeMeta: metav1.TypeMeta{APIVersion: "autoscaling/v1", Kind: "Scale"}, Spec: autoscalingv1.ScaleSpec{Replicas: 3}}
	mux.Handle("GET /apis/apps.tkestack.io/v1/namespaces/ns/tapps/a", answer(tapp))
	mux.Handle("PUT /apis/apps.tkestack.io/v1/namespaces/ns/tapps/a/status", answer(tapp))
	mux.Handle("/apis/apps.tkestack.io/v1/namespaces/ns/tapps/a/scale", answer(scale))
	mux.Handle("GET /apis/apps.tkestack.io/v1/tapps", answer(list))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)

	c, err := client.New(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeProtobuf}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestClient(t *testing.T) {
	tapps := newClient(t).TApps("ns")
	if got, err := tapps.Get(t.Context(), "a", metav1.GetOptions{}); err != nil || got.Name != "a" {
		t.Errorf("get: %v, %v", got, err)
	}
	if got, err := tapps.UpdateStatus(t.Context(), &tapp, metav1.UpdateOptions{}); err != nil || got.Name != "a" {
		t.Errorf("update of the status: %v, %v", got, err)
	}
	if got, err := tapps.GetScale(t.Context(), "a", metav1.GetOptions{}); err != nil || got.Spec.Replicas != 3 {
		t.Errorf("get of the scale: %v, %v", got, err)
	}
	if got, err := tapps.UpdateScale(t.Context(), "a", &autoscalingv1.Scale{}, metav1.UpdateOptions{}); err != nil || got.Spec.Replicas != 3 {
		t.Errorf("update of the scale: %v, %v", got, err)
	}
}

func TestInformer(t *testing.T) {
	informer, err := client.NewInformer(newClient(t), metav1.NamespaceAll, func(o any) (any, error) {
		o.(*tappv1.TApp).ManagedFields = nil
		return o, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	added := make(chan string, 1)
	handler := cache.ResourceEventHandlerFuncs{AddFunc: func(o any) { added <- o.(*tappv1.TApp).Name }}
	if _, err := informer.AddEventHandler(handler); err != nil {
		t.Fatal(err)
	}
	go informer.RunWithContext(t.Context())
	select {
	case name := <-added:
		if name != "a" {
			t.Errorf("added %q", name)
		}
	case <-time.After(3 * time.Minute):
		t.Fatal("no TApp came")
	}

	lister := client.NewLister(informer)
	got, err := lister.TApps("ns").Get("a")
	if err != nil || got.ManagedFields != nil {
		t.Errorf("get: %v, %v", got, err)
	}
	if all, err := lister.List(labels.Everything()); err != nil || len(all) != 1 {
		t.Errorf("list: %v, %v", all, err)
	}
	if none, err := lister.TApps("other").List(labels.Everything()); err != nil || len(none) != 0 {
		t.Errorf("list of another namespace: %v, %v", none, err)
	}
}
