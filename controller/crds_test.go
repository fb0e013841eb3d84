package controller

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// answering is a connection whose requests are answered by f: a code of 0 is no answer.
func answering(f func(*http.Request) (int, string)) *rest.Config {
	return &rest.Config{Host: "http://api", QPS: -1, Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		code, body := f(r)
		if code == 0 {
			return nil, errors.New("connection refused")
		}
		return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	})}
}

// forbidden is the body of a 403.
const forbidden = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no"}`

// TestCRDs: they are applied as soon as there is an API server, and established
// before anything else begins.
func TestCRDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, gets := time.Now(), 0
		api := answering(func(r *http.Request) (int, string) {
			if time.Since(began) < time.Minute {
				return 0, ""
			}
			established := "False"
			if r.Method == http.MethodGet {
				if gets++; gets > 3 {
					established = "True"
				}
			}
			return 200, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"tapps.apps.tkestack.io"},` +
				`"status":{"conditions":[{"type":"Established","status":"` + established + `"}]}}`
		})
		if err := ensureCRDs(t.Context(), dynamic.NewForConfigOrDie(api), allKinds()[:1]); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); gets != 4 || took < time.Minute || took > 70*time.Second {
			t.Errorf("done after %v and %d reads, want soon after a minute, and 4", took, gets)
		}
	})
}

func TestCRDsForbidden(t *testing.T) {
	api := answering(func(*http.Request) (int, string) {
		return 403, forbidden
	})
	err := ensureCRDs(t.Context(), dynamic.NewForConfigOrDie(api), allKinds()[:1])
	if err == nil || !strings.Contains(err.Error(), "CustomResourceDefinition tapps.apps.tkestack.io: this program may not apply it") || !strings.Contains(err.Error(), "--create-crd=false") {
		t.Errorf("got error %v, want one that says what to do", err)
	}
}
