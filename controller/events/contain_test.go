package events

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"

	"tkestack.io/tapp/process/parallel"
)

// buggy panics where it is to send an event about the thing "unsent".
type buggy struct{ sink }

func (b *buggy) Events(string) corev1client.EventInterface { return b }

func (b *buggy) Create(ctx context.Context, e *corev1.Event, o metav1.CreateOptions) (*corev1.Event, error) {
	if e.InvolvedObject.Name == "unsent" {
		panic("on purpose")
	}
	return b.sink.Create(ctx, e, o)
}

// TestPanicOfAnEvent: an event that cannot be worded or sent for a bug is lost, once, and
// counted. The others are told, at that time and later.
func TestPanicOfAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b buggy
		panics := 0
		r := NewRecorder(Options{Client: &b, Component: "test", Host: "host", Clock: clock.RealClock{},
			Names: func(ids []int) string {
				if slices.Contains(ids, 13) {
					panic("on purpose")
				}
				return "objects"
			},
			Contain: func(f func() error) error { return parallel.Contain(func() { panics++ }, f) },
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { r.Run(ctx); close(done) }()
		for range 2 {
			r.Note(thing("unsent"), created, 1)
			r.Note(thing("unworded"), created, 13)
			r.Note(thing("well"), created, 1)
			time.Sleep(time.Minute)
		}
		time.Sleep(time.Hour)
		cancel()
		<-done
		if len(b.told) != 2 || panics != 4 || len(r.series)+len(r.open) != 0 {
			t.Errorf("told %q after %d panics, and %d series are left; want 2, 4 and 0", b.told, panics, len(r.series))
		}
	})
}
