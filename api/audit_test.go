package api

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"tkestack.io/tapp/api/access"
)

// TestAuditLine: at V(2) each request has one line that says who asked for what, and what came
// of it; below it there is none. What a caller sends as a token or a query is in no line.
func TestAuditLine(t *testing.T) {
	requests := []struct {
		method, target, token, user string
		code                        int
	}{
		{http.MethodGet, "/healthz", "", "", http.StatusOK},
		{http.MethodGet, "/api/v1/whoami", "secret", "jane", http.StatusOK},
		{http.MethodHead, "/api/v1/whoami", "secret", "jane", http.StatusOK},
		{http.MethodGet, "/api/v1/whoami", "forged", "", http.StatusUnauthorized},
		{http.MethodGet, "/api/v1/namespaces/shop/tapps?watch=maybe&secret=1", "secret", "jane", http.StatusBadRequest},
		{http.MethodGet, "/api/cluster/all/namespace/Shop/pod/a", "secret", "jane", http.StatusBadRequest},
	}
	for verbosity, lines := range map[int]int{1: 0, 2: len(requests)} {
		t.Run(fmt.Sprintf("v=%d", verbosity), func(t *testing.T) {
			logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(verbosity), ktesting.BufferLogs(true)))
			a, err := New(klog.NewContext(t.Context(), logger), Options{Config: &rest.Config{Host: "http://127.0.0.1:1"}, Authenticator: access.Loopback{Token: "secret", User: "jane"}, Authorizer: access.Loopback{}})
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			for _, c := range requests {
				r := httptest.NewRequestWithContext(t.Context(), c.method, c.target, http.NoBody)
				r.Header.Set("Authorization", "Bearer "+c.token)
				w := httptest.NewRecorder()
				a.ServeHTTP(w, r)
				if w.Code != c.code {
					t.Errorf("%s %s: %d %s, want %d", c.method, c.target, w.Code, w.Body, c.code)
				}
			}
			said := logger.GetSink().(ktesting.Underlier).GetBuffer().Data()
			if len(said) != lines {
				t.Fatalf("%d lines for %d requests:\n%s", len(said), len(requests), logger.GetSink().(ktesting.Underlier).GetBuffer().String())
			}
			for i, line := range said {
				c, values := requests[i], map[string]any{}
				for k := 0; k+1 < len(line.ParameterKVList); k += 2 {
					values[fmt.Sprint(line.ParameterKVList[k])] = line.ParameterKVList[k+1]
				}
				path := httptest.NewRequestWithContext(t.Context(), c.method, c.target, http.NoBody).URL.Path
				for key, want := range map[string]any{"method": c.method, "path": path, "user": c.user, "from": "192.0.2.1", "code": c.code} {
					if fmt.Sprint(values[key]) != fmt.Sprint(want) {
						t.Errorf("%s %s: %s is %v, want %v", c.method, c.target, key, values[key], want)
					}
				}
				if line.Message != "Request" || line.Verbosity != 2 || len(values) != 7 {
					t.Errorf("%s %s: %+v", c.method, c.target, line)
				}
			}
		})
	}
}
