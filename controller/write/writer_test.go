package write

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
)

func never() bool { return false }

// TestWriterCounts: what came of each write, by its error.
func TestWriterCounts(t *testing.T) {
	w := NewWriter(clock.RealClock{}, MaxConcurrent)
	var writes []Write
	for _, err := range []error{nil, nil, errTaken, fmt.Errorf("%w: gone", ErrStale), UnlessTerminating(errGoing), nil} {
		writes = append(writes, Write{Op: "Create", Class: "a", Do: func() error { return err }})
	}
	var c Concurrency
	got := w.Run(t.Context(), &c, Batch{Namespace: "ns", Writes: writes, Over: never})
	if fmt.Sprint(got) != "{map[Create:3] 2 1 0 true}" {
		t.Errorf("got %+v", got)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if got := w.Run(ended, &c, Batch{Writes: writes[2:3], Over: never}); got.Failed != 0 {
		t.Errorf("what is broken off is no fault: %+v", got)
	}
}

// TestWriterInOrder: with one write under way at most, writes are made in order.
func TestWriterInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWriter(clock.RealClock{}, 1)
		var running atomic.Int32
		var order []int
		var writes []Write
		for n := range 20 {
			writes = append(writes, Write{Op: "Apply", Do: func() error {
				if running.Add(1) > 1 {
					t.Error("two at once")
				}
				order = append(order, n)
				time.Sleep(time.Second)
				running.Add(-1)
				return nil
			}})
		}
		var c Concurrency
		for range 2 { // the second batch is trusted
			order = nil
			w.Run(t.Context(), &c, Batch{Namespace: "ns", Writes: writes, Over: never})
			for n, got := range order {
				if n != got {
					t.Fatalf("the order is %v", order)
				}
			}
		}
	})
}

// TestMayAdopt: the adopter is read live, and must be the same and stay.
func TestMayAdopt(t *testing.T) {
	owner := func(uid string, deleted bool) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u"}}
		if p.UID = "u"; uid != "u" {
			p.UID = "other"
		}
		if deleted {
			p.DeletionTimestamp = &metav1.Time{}
		}
		return p
	}
	for name, c := range map[string]struct {
		live *corev1.Pod
		err  error
		want string
	}{
		"still there":   {owner("u", false), nil, "<nil>"},
		"being deleted": {owner("u", true), nil, "the view was stale: the Owner is being deleted"},
		"another one":   {owner("other", false), nil, "the view was stale: the Owner is gone"},
		"gone":          {nil, apierrors.NewNotFound(corev1.Resource("owners"), "a"), "the view was stale: the Owner is gone"},
		"unknown":       {nil, errTaken, "reading the Owner live: " + errTaken.Error()},
	} {
		asked := 0
		may := Once(func() error {
			asked++
			return MayAdopt("Owner", "u", func() (*corev1.Pod, error) { return c.live, c.err })
		})
		for range 3 {
			if err := may(); fmt.Sprint(err) != c.want {
				t.Errorf("%s: got error %v, want %s", name, err, c.want)
			}
		}
		if err := may(); asked != 1 || name != "unknown" && errors.Is(err, ErrStale) != (c.want != "<nil>") {
			t.Errorf("%s: asked %d times, error %v", name, asked, err)
		}
	}
}
