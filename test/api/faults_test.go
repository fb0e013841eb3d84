//go:build cluster

package api

import (
	"context"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	apiv1 "tkestack.io/tapp/api/v1"
	"tkestack.io/tapp/test/gen"
)

// TestReconnect: a client that comes back gets nothing twice if nothing changed, and
// everything if something did.
func TestReconnect(t *testing.T) {
	r := newRig(t)
	token := r.viewer()
	r.Create(gen.TApp("web", gen.Replicas(1)))
	r.WaitReady("web")
	path := "/api/v1/namespaces/" + r.NS + "/tapps/web/instances?watch=1"
	first := r.watch(path, token)
	id := first.until(r, "list", func(data string) bool { return strings.Contains(data, `"state":"Running"`) }).id
	_ = first.response.Body.Close()
	again := r.watch(path, token, "Last-Event-ID", id)
	if e := <-again.events; e.name != "health" {
		t.Errorf("got %+v", e)
	}
	r.Change("web", gen.Replicas(2))
	again.until(r, "change", func(data string) bool { return strings.Contains(data, `"pod":"web-1"`) })
	stale := r.watch(path, token, "Last-Event-ID", id)
	stale.until(r, "list", func(data string) bool { return strings.Contains(data, `"total":2`) })
}

// TestAway: while the API server is away, what was known is shown with a word that it is not
// current; streams live on.
func TestAway(t *testing.T) {
	r := newRig(t)
	token := r.viewer()
	r.Create(gen.TApp("web", gen.Replicas(2)))
	r.WaitReady("web")
	path := "/api/v1/namespaces/" + r.NS + "/tapps"
	stream := r.watch(path+"/web/instances?watch=1", token)
	stream.until(r, "list", func(data string) bool { return strings.Contains(data, `"total":2`) })
	r.Devcluster("stop", "kube-apiserver")
	back := sync.OnceFunc(func() { r.Devcluster("start", "kube-apiserver") })
	defer back()
	stream.until(r, "health", func(data string) bool {
		return strings.Contains(data, "the API server cannot be asked about") && strings.Contains(data, `"asOf"`)
	})
	shown := get[apiv1.InstanceList](r, path+"/web/instances", token)
	if shown.Total != 2 || shown.Degraded == "" || shown.AsOf == nil {
		t.Errorf("%+v", shown)
	}
	if response, body := r.ask("GET", path, "unknown", ""); response.StatusCode != 503 || response.Header.Get("Retry-After") == "" || !strings.Contains(body, "the API server could not be asked who you are") {
		t.Error(response.Status, body)
	}
	back()
	stream.until(r, "health", func(data string) bool { return data == "{}" })
	r.Eventually("the API server takes changes again", func(ctx context.Context) error {
		w, err := r.TApps.Get(ctx, "web", metav1.GetOptions{})
		if err == nil {
			w.Spec.Replicas = new(int32(3))
			_, err = r.TApps.Update(ctx, w, metav1.UpdateOptions{})
		}
		return err
	})
	stream.until(r, "change", func(data string) bool { return strings.Contains(data, `"pod":"web-2"`) })
}
