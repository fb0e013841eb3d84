package controller

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestVerbAndResource(t *testing.T) {
	for in, want := range map[string]string{
		"GET /api/v1/pods?labelSelector=x":                                         "list pods",
		"GET /api/v1/pods?watch=true":                                              "watch pods",
		"GET /api/v1/namespaces/ns/pods/a-1":                                       "get pods",
		"POST /api/v1/namespaces/ns/pods":                                          "create pods",
		"PATCH /api/v1/namespaces/ns/pods/a-1/status":                              "patch pods/status",
		"DELETE /api/v1/namespaces/ns/pods/a-1":                                    "delete pods",
		"PATCH /apis/apps.tkestack.io/v1/namespaces/ns/tapps/a/status":             "patch tapps/status",
		"PUT /apis/coordination.k8s.io/v1/namespaces/ns/leases/x":                  "update leases",
		"GET /api/v1/nodes/n1":                                                     "get nodes",
		"GET /api/v1/namespaces/ns":                                                "get namespaces",
		"PATCH /apis/apiextensions.k8s.io/v1/customresourcedefinitions/tapps.x.io": "patch customresourcedefinitions",
		"GET /version": "get other",
	} {
		method, url, _ := strings.Cut(in, " ")
		verb, resource := verbAndResource(httptest.NewRequest(method, "http://api"+url, nil))
		if got := verb + " " + resource; got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestRequestsAreCounted(t *testing.T) {
	m := newRequestMetrics(prometheus.NewRegistry())
	rt := m.wrap(roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodDelete {
			return nil, errors.New("away")
		}
		return &http.Response{StatusCode: 409}, nil
	}))
	_, _ = rt.RoundTrip(httptest.NewRequest(http.MethodPost, "http://api/api/v1/namespaces/ns/pods", nil))
	_, _ = rt.RoundTrip(httptest.NewRequest(http.MethodDelete, "http://api/api/v1/namespaces/ns/pods/a", nil))
	if testutil.ToFloat64(m.total.WithLabelValues("create", "pods", "409")) != 1 || testutil.ToFloat64(m.total.WithLabelValues("delete", "pods", "")) != 1 {
		t.Error("not counted")
	}
}

// TestHeldReads: a watch that finds no API server is held until there is one, for
// as long as it is wanted; a write is not.
func TestHeldReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		p := newHeldReads(roundTripper(func(*http.Request) (*http.Response, error) {
			if time.Since(began) < time.Minute {
				return nil, errors.New("connection refused")
			}
			return &http.Response{StatusCode: 200}, nil
		}))
		if _, err := p.RoundTrip(httptest.NewRequest(http.MethodPost, "http://api/", nil)); err == nil {
			t.Error("a write was held")
		}
		get := httptest.NewRequest(http.MethodGet, "http://api/", nil)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := p.RoundTrip(get.WithContext(ctx)); err == nil || time.Since(began) != 10*time.Second {
			t.Errorf("got error %v after %v, want one when nobody waits any more", err, time.Since(began))
		}
		if _, err := p.RoundTrip(get); err != nil || time.Since(began) > 62*time.Second {
			t.Errorf("got error %v after %v, want none soon after it is back", err, time.Since(began))
		}
	})
}
