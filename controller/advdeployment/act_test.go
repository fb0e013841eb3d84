package advdeployment

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"tkestack.io/tapp/controller/write"
	"tkestack.io/tapp/crd/workload/v1beta1"
	plan "tkestack.io/tapp/plan/advdeployment"
)

// TestKindNotServed: a child whose kind the cluster does not know is told of as refused, with
// what to do. One that is to be deleted is gone with its kind.
func TestKindNotServed(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler()) // as an API server answers for a group that it does not know
	t.Cleanup(server.Close)
	children, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	c := &Controller{Options: Options{Clients: Clients{Children: children}, Metrics: NewMetrics(prometheus.NewRegistry())}}
	child := plan.Child{Kind: plan.TApp, Name: "web-blue"}
	for op, want := range map[plan.Op]string{plan.Create: "it does not serve tapps.apps.tkestack.io: install the CRD there", plan.Delete: ""} {
		v := newView(&v1beta1.AdvDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}})
		var errs write.Failures
		err := c.act(t.Context(), v, &object{}, plan.Action{Op: op, Child: child, UID: "uid", Manifest: map[string]any{"metadata": map[string]any{"name": child.Name}}}, &errs)
		if err == nil || v.refused[child] != want || v.children[child] != nil {
			t.Errorf("%s: %v, refused %q, want %q", op, err, v.refused[child], want)
		}
	}
}

// TestSetFreeMeanwhile: the garbage collector released a child after it was seen. It is not deleted,
// and is nobody's from then on.
func TestSetFreeMeanwhile(t *testing.T) {
	deleted := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodDelete {
			var o metav1.DeleteOptions
			if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
				t.Error(err)
			}
			if p := o.Preconditions; p != nil && p.ResourceVersion != nil && *p.ResourceVersion != "8" {
				w.WriteHeader(http.StatusConflict)
				_, _ = fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Conflict", "code": 409}`)
				return
			}
			deleted = true
		}
		_, _ = fmt.Fprint(w, `{"apiVersion": "apps.tkestack.io/v1", "kind": "TApp", "metadata": {"namespace": "shop", "name": "web-blue", "uid": "uid", "resourceVersion": "8"}}`)
	}))
	t.Cleanup(server.Close)
	children, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	c := &Controller{Options: Options{Clients: Clients{Children: children}, Metrics: NewMetrics(prometheus.NewRegistry())}}
	v := newView(&v1beta1.AdvDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web"}})
	child := plan.Child{Kind: plan.TApp, Name: "web-blue"}
	var errs write.Failures
	if err := c.act(t.Context(), v, &object{}, plan.Action{Op: plan.Delete, Child: child, UID: "uid", Version: "7"}, &errs); err == nil || deleted {
		t.Errorf("it was deleted: %v", err)
	}
	if now := v.children[child]; now == nil || now.GetResourceVersion() != "8" || v.isOurs(now) {
		t.Errorf("it is seen as %v", now)
	}
}
