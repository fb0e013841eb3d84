package controller

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// TestWatchesHaveTheirOwnConnections: on a connection that they share with writes they
// fall behind these.
func TestWatchesHaveTheirOwnConnections(t *testing.T) {
	var mu sync.Mutex
	connections := map[string]string{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		verb, resource := verbAndResource(r)
		connections[verb+" "+resource] = r.Proto + " " + r.RemoteAddr
		w.Header().Set("Content-Type", "application/json")
		switch verb {
		case "list":
			_, _ = io.WriteString(w, `{"kind":"PodList","apiVersion":"v1"}`)
		case "get":
			_, _ = io.WriteString(w, `{"kind":"Node","apiVersion":"v1"}`)
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()

	config := Defaults()
	config.REST = &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{
		CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}}
	api, err := config.connect(newRequestMetrics(prometheus.NewRegistry()))
	if err != nil {
		t.Fatal(err)
	}
	requests, watches, events := corev1client.NewForConfigOrDie(api.requests), corev1client.NewForConfigOrDie(api.watches), corev1client.NewForConfigOrDie(api.events)
	watch, err := watches.Pods("ns").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watch.Stop()
	if _, err := requests.Pods("ns").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := requests.Nodes().Get(t.Context(), "n", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := coordinationv1client.NewForConfigOrDie(api.leases).Leases("ns").Delete(t.Context(), "l", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := events.Events("ns").Create(t.Context(), &corev1.Event{}, metav1.CreateOptions{}); err == nil {
		t.Fatal("an empty answer was taken for an event")
	}

	mu.Lock()
	defer mu.Unlock()
	working := connections["list pods"]
	for _, other := range []string{"get nodes", "delete leases", "create events"} {
		if connections[other] != working {
			t.Errorf("%q came by %s, want that of other requests, %s", other, connections[other], working)
		}
	}
	if got := connections["watch pods"]; got == working || got == "" {
		t.Errorf("the watch came by %q, want another one than %s", got, working)
	}
}
