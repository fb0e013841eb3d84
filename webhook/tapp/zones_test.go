package tapp

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// TestLiveZones: an answer holds for ten minutes, no answer for none, and who may not know
// spreads over nodes alone.
func TestLiveZones(t *testing.T) {
	code, asked := http.StatusOK, 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		w.Header().Set("Content-Type", "application/json")
		if w.WriteHeader(code); code != http.StatusOK {
			_ = json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Reason: metav1.StatusReason(http.StatusText(code))})
			return
		}
		list := metav1.PartialObjectMetadataList{}
		if r.URL.Query().Get("labelSelector")[0] != '!' {
			list.Items = append(list.Items, metav1.PartialObjectMetadata{})
		}
		_ = json.NewEncoder(w).Encode(list)
	}))
	defer server.Close()
	core, err := corev1client.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1e9, 0)
	zones := liveZones(core.RESTClient(), func() time.Time { return now })
	for i, c := range []struct {
		code  int
		later time.Duration
		want  bool
		asked int
	}{
		{http.StatusServiceUnavailable, 0, false, 1},
		{http.StatusOK, 0, true, 2},
		{http.StatusOK, zonesEvery - 1, true, 0},
		{http.StatusOK, 1, true, 2},
		{http.StatusServiceUnavailable, zonesEvery, true, 1},
		{http.StatusForbidden, 0, false, 1},
		{http.StatusOK, zonesEvery - 1, false, 0},
		{http.StatusOK, 1, true, 2},
	} {
		code, asked, now = c.code, 0, now.Add(c.later)
		if got := zones(t.Context()); got != c.want || asked != c.asked {
			t.Errorf("%d: got %t after %d requests, want %t after %d", i, got, asked, c.want, c.asked)
		}
	}
}

// TestZonesWhileAsked: who comes meanwhile does not wait.
func TestZonesWhileAsked(t *testing.T) {
	var zones func() bool
	transport := roundTrip(func(*http.Request) (*http.Response, error) {
		if zones() {
			t.Error("it is known before there is an answer")
		}
		return nil, errors.New("no answer")
	})
	core, err := corev1client.NewForConfig(&rest.Config{Host: "http://stub", Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	live := liveZones(core.RESTClient(), time.Now)
	zones = func() bool { return live(t.Context()) }
	if zones() {
		t.Error("there was no answer")
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
