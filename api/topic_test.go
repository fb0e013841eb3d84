package api

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/tools/cache"

	"tkestack.io/tapp/api/answer"
	"tkestack.io/tapp/api/live"
)

// TestPanicOfATopic: an object that triggers a bug is not shown, and says so to who looks at
// it; the process goes on, and so do the other topics.
func TestPanicOfATopic(t *testing.T) {
	s := serveCrowd(t, 3, Limits{}, false)
	about := func(live.Resource, cache.ObjectName) bool { return false }
	topic, release, err := s.api.topics.Acquire("broken", about, func(context.Context, *live.Topic, *live.Shown) (*live.Shown, time.Duration, error) {
		panic("on purpose")
	})
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	var failure error
	for failure == nil {
		_, _, next, err := topic.Look()
		if failure = err; failure == nil {
			<-next
		}
	}
	told := answer.StatusOf(failure)
	if told.Code != http.StatusInternalServerError || told.Message != "Internal error occurred: see the log of tapp api" {
		t.Errorf("whoever looks is told: %d %s", told.Code, told.Message)
	}
	if n := testutil.ToFloat64(s.api.metrics.panics); n != 1 {
		t.Errorf("%v panics are counted", n)
	}
	response, err := s.open(t.Context())
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatal(response, err)
	}
	defer func() { _ = response.Body.Close() }()
	if err := read(response.Body, `"big-0"`); err != nil {
		t.Error(err)
	}
}
