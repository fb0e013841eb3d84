package review

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestLoad: reviews beyond the bounds are put off, and their room is free again when
// they end, however they end.
func TestLoad(t *testing.T) {
	m := NewMetrics(prometheus.NewRegistry())
	body := bodyOf(t, `{}`)
	for _, c := range []struct {
		name string
		load *Load
	}{
		{"count", &Load{Reviews: 2, Bytes: MaxBytes}},
		{"bytes", &Load{Reviews: 9, Bytes: int64(2 * len(body))}},
	} {
		t.Run(c.name, func(t *testing.T) {
			begun, goOn := make(chan struct{}), make(chan struct{})
			var judged atomic.Int32
			h := c.load.Bound(Handler("size", m, Decode[*object], func(context.Context, *Request[*object]) (Answer, error) {
				if judged.Add(1) > 2 {
					return Allow(nil, nil), nil
				}
				begun <- struct{}{}
				<-goOn
				panic("it ends in the worst way")
			}))
			answers := make(chan int, 2)
			for range 2 {
				go func() { answers <- post(h, "application/json", body).Code }()
				<-begun
			}
			w := post(h, "application/json", body)
			if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" || w.Body.String() != "too many reviews are under way; try again\n" {
				t.Errorf("the third one gets %d, %v: %s", w.Code, w.Header(), w.Body)
			}
			close(goOn)
			if a, b := <-answers, <-answers; a != 500 || b != 500 {
				t.Errorf("the first two got %d and %d", a, b)
			}
			if c.load.reviews != 0 || c.load.bytes != 0 {
				t.Errorf("%d reviews and %d bytes are left", c.load.reviews, c.load.bytes)
			}
		})
	}
	if n := testutil.ToFloat64(m.refused.WithLabelValues("size", "busy")); n != 2 {
		t.Errorf("%v were counted", n)
	}
}

// TestSlowCallers: those who do not send their bodies take nobody's place.
func TestSlowCallers(t *testing.T) {
	load := Load{Reviews: 1, Bytes: MaxBytes}
	h := load.Bound(Handler("size", NewMetrics(prometheus.NewRegistry()), Decode[*object], judgeSize))
	read, write := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r := httptest.NewRequest(http.MethodPost, "/", read)
		r.ContentLength = MaxBytes
		r.Header.Set("Content-Type", "application/json")
		h.ServeHTTP(httptest.NewRecorder(), r)
	}()
	for range 2 { // the second one is taken when the first one is counted
		_, _ = fmt.Fprint(write, "{")
	}
	if w := post(h, "application/json", bodyOf(t, `{"size":1}`)); w.Code != 200 {
		t.Errorf("got %d and %s", w.Code, w.Body)
	}
	_ = write.Close()
	<-ended
}

// TestOutOfTime: the failurePolicy decides.
func TestOutOfTime(t *testing.T) {
	m := NewMetrics(prometheus.NewRegistry())
	w := post(Handler("size", m, Decode[*object], func(context.Context, *Request[*object]) (Answer, error) {
		return Answer{}, fmt.Errorf("judging: %w", ErrOutOfTime)
	}), "application/json", bodyOf(t, `{}`))
	if w.Code != http.StatusGatewayTimeout || !strings.Contains(w.Body.String(), "the review took longer than the API server waits") || testutil.ToFloat64(m.refused.WithLabelValues("size", "late")) != 1 {
		t.Errorf("got %d and %s", w.Code, w.Body)
	}
}
