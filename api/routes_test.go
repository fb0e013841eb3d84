package api

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/mux"
	"k8s.io/client-go/rest"

	"tkestack.io/tapp/api/access"
)

// TestDocumentHasEveryRoute: the router is walked, and the OpenAPI document has each route and
// method of it, and no other.
func TestDocumentHasEveryRoute(t *testing.T) {
	var read struct {
		Paths map[string]map[string]any
	}
	if err := json.Unmarshal(document, &read); err != nil {
		t.Fatal(err)
	}
	a, err := New(t.Context(), Options{Config: &rest.Config{Host: "http://127.0.0.1"}, Authenticator: access.Loopback{}, Authorizer: access.Loopback{}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	walked := 0
	if err := a.router().Walk(func(route *mux.Route, _ *mux.Router, _ []*mux.Route) error {
		path, err := route.GetPathTemplate()
		if err != nil {
			return err
		}
		methods, err := route.GetMethods()
		if err != nil {
			return err
		}
		if slices.Contains(methods, http.MethodGet) != slices.Contains(methods, http.MethodHead) {
			t.Errorf("%s takes %v: HEAD goes with GET", path, methods)
		}
		for _, method := range methods {
			if method == http.MethodHead {
				continue // the document says that HEAD is answered wherever GET is
			}
			if read.Paths[path][strings.ToLower(method)] == nil {
				t.Errorf("the document lacks %s %s", method, path)
			}
			walked++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	documented := 0
	for _, methods := range read.Paths {
		documented += len(methods)
	}
	if walked != documented || walked < 20 {
		t.Errorf("the router has %d routes, the document %d", walked, documented)
	}
}
