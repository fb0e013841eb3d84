package client_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	appv1 "tkestack.io/tapp/crd/app/v1"
	"tkestack.io/tapp/crd/client"
)

// TestApps: the client asks for Apps where they are, in JSON.
func TestApps(t *testing.T) {
	answers := map[string]any{
		"/apis/appcontroller.k8s.io/v1/namespaces/ns/apps/a": appv1.App{
			TypeMeta: metav1.TypeMeta{APIVersion: "appcontroller.k8s.io/v1", Kind: "App"}, ObjectMeta: metav1.ObjectMeta{Name: "a"}},
		"/apis/appcontroller.k8s.io/v1/namespaces/ns/apps/a/scale": autoscalingv1.Scale{
			TypeMeta: metav1.TypeMeta{APIVersion: "autoscaling/v1", Kind: "Scale"}, Spec: autoscalingv1.ScaleSpec{Replicas: 3}},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, known := answers[r.URL.Path]
		if !known || r.Header.Get("Accept") != runtime.ContentTypeJSON {
			http.Error(w, r.URL.Path, http.StatusNotAcceptable)
			return
		}
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	c, err := client.NewApps(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeProtobuf}})
	if err != nil {
		t.Fatal(err)
	}
	if a, err := c.Apps("ns").Get(t.Context(), "a", metav1.GetOptions{}); err != nil || a.Name != "a" {
		t.Errorf("get: %v, %v", a, err)
	}
	if s, err := c.Apps("ns").GetScale(t.Context(), "a", metav1.GetOptions{}); err != nil || s.Spec.Replicas != 3 {
		t.Errorf("get of the scale: %v, %v", s, err)
	}
}
