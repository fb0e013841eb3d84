package tapp

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

func TestStatusPatch(t *testing.T) {
	tapp := someTApp("a")
	tapp.Status = tappv1.TAppStatus{Replicas: 2, ScaleLabelSelector: "app=a", Statuses: map[string]tappv1.InstanceStatus{"0": "Running", "1": "Running"}}
	next := tapp.Status.DeepCopy()
	next.ReadyReplicas = 1
	next.Statuses = map[string]tappv1.InstanceStatus{"0": "Running"}
	got, err := statusPatch(tapp, next)
	if want := `{"metadata":{"uid":"uid-a"},"status":{"readyReplicas":1,"statuses":{"1":null}}}`; err != nil || string(got) != want {
		t.Errorf("got %s and error %v, want %s", got, err, want)
	}
	next.Replicas = 0 // replicas has no omitempty, so that 0 is written
	got, _ = statusPatch(tapp, next)
	if !strings.Contains(string(got), `"replicas":0`) {
		t.Errorf("got %s", got)
	}
}

// TestStatusIsCoalesced: a status that changes 100 times a second for 10 s is
// written at most twice a second, and its last state always.
func TestStatusIsCoalesced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tapp := someTApp("a")
		s := &stub{answer: func(string, string, string) (int, any) { return 200, tapp }}
		c := s.newController(t)
		m := &memory{}
		put := func(ready int32) time.Duration {
			rest, err := c.putStatus(t.Context(), tapp, m, &tappv1.TAppStatus{ReadyReplicas: ready})
			if err != nil {
				t.Fatal(err)
			}
			if rest == 0 {
				tapp.Status.ReadyReplicas = ready // what the informer will say
			}
			return rest
		}
		var rest time.Duration
		for ready := range int32(1000) {
			rest = put(ready + 1)
			time.Sleep(10 * time.Millisecond)
		}
		if n := len(s.asked()); n < 15 || n > 20 {
			t.Errorf("%d writes in 10 s, want up to 2 a second", n)
		}
		if rest == 0 {
			t.Fatal("the last one was not held back; the test is too weak")
		}
		time.Sleep(rest)
		if put(1000) != 0 || tapp.Status.ReadyReplicas != 1000 {
			t.Error("the last state was not written")
		}
		before := len(s.asked())
		time.Sleep(time.Hour)
		if put(1000); len(s.asked()) != before {
			t.Error("an unchanged status was written")
		}
		if ask := s.asked()[0]; !strings.HasPrefix(ask, http.MethodPatch+" /apis/apps.tkestack.io/v1/namespaces/ns/tapps/a/status ") {
			t.Errorf("asked %s", ask)
		}
	})
}

func TestStatusIsFlushed(t *testing.T) {
	tapp := someTApp("a")
	s := &stub{answer: func(string, string, string) (int, any) { return 200, tapp }}
	c := s.newController(t)
	m := c.remember(keyOf("a"), tapp.UID)
	for ready := range int32(3) {
		if _, err := c.putStatus(t.Context(), tapp, m, &tappv1.TAppStatus{ReadyReplicas: ready + 1}); err != nil {
			t.Fatal(err)
		}
	}
	c.flushStatuses(t.Context())
	if asks := s.asked(); len(asks) != 2 || !strings.Contains(asks[1], `"readyReplicas":3`) {
		t.Errorf("asked %q, want the first and the last", asks)
	}
}
