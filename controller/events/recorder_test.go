package events

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"
)

// sink takes events, and keeps them as "type reason message".
type sink struct {
	corev1client.EventInterface
	mu   sync.Mutex
	told []string
	from []string
}

func (s *sink) Events(string) corev1client.EventInterface { return s }

func (s *sink) Create(_ context.Context, e *corev1.Event, _ metav1.CreateOptions) (*corev1.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, e.Type+" "+e.Reason+" "+e.Message)
	s.from = append(s.from, e.Source.Component+"@"+e.Source.Host+" "+e.InvolvedObject.Kind+" "+e.InvolvedObject.Namespace+"/"+e.InvolvedObject.Name)
	return e, nil
}

// telling runs a recorder in fake time; told are its events.
func telling(t *testing.T, f func(r *Recorder, told func() []string)) {
	synctest.Test(t, func(t *testing.T) {
		var s sink
		r := NewRecorder(Options{Client: &s, Component: "test", Host: "host", Clock: clock.RealClock{},
			Names: func(ids []int) string { return fmt.Sprintf("objects %d-%d", slices.Min(ids), slices.Max(ids)) }})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { r.Run(ctx); close(done) }()
		f(r, func() []string {
			synctest.Wait()
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, from := range s.from {
				if !strings.HasPrefix(from, "test@host Thing ns/") {
					t.Errorf("an event is from and about %s", from)
				}
			}
			return slices.Clone(s.told)
		})
		cancel()
		<-done
	})
}

func thing(name string) corev1.ObjectReference {
	return corev1.ObjectReference{Kind: "Thing", Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}
}

var created = Topic{Type: "Normal", Reason: "SuccessfulCreate", Title: "created", Why: "why"}

// TestEventsOfARollout: 1,000 objects trickle in over a minute, and are updated
// over another one.
func TestEventsOfARollout(t *testing.T) {
	telling(t, func(r *Recorder, told func() []string) {
		for _, title := range []string{"created", "updated in place"} {
			for n := range 1000 {
				r.Note(thing("a"), Topic{Type: "Normal", Reason: "Successful", Title: title, Why: "why"}, n)
				time.Sleep(60 * time.Millisecond)
			}
			r.Settled("uid-a")
			time.Sleep(time.Second)
		}
		if got := told(); len(got) > 12 {
			t.Errorf("%d events: %q", len(got), got)
		}
		settled := len(told())
		time.Sleep(time.Hour)
		if got := told(); len(got) != settled {
			t.Errorf("events came after all had settled: %q", got[settled:])
		}
		if len(r.series)+len(r.open) != 0 {
			t.Error("series are remembered for ever")
		}
	})
}

// TestEventsOfAStorm: what is noted all the time does not keep anything from being told.
func TestEventsOfAStorm(t *testing.T) {
	telling(t, func(r *Recorder, told func() []string) {
		for n := range 400 {
			r.Note(thing("a"), created, n)
			time.Sleep(7 * time.Millisecond) // none when the event is due
		}
		if got := fmt.Sprint(told()); got != "[Normal SuccessfulCreate created objects 0-142: why]" {
			t.Errorf("told in 2.8 s: %s", got)
		}
	})
}

// TestEventsAreHurriedOnce: an event that is brought forward already is not again.
func TestEventsAreHurriedOnce(t *testing.T) {
	telling(t, func(r *Recorder, told func() []string) {
		for n := range maxHurried {
			r.Note(thing("a"), created, n)
			for range 5 {
				r.Settled("uid-a")
			}
			time.Sleep(100 * time.Millisecond)
		}
		if got := told(); len(got) != maxHurried {
			t.Errorf("%d events of %d that settled: %q", len(got), maxHurried, got)
		}
	})
}

func TestEventsAreBounded(t *testing.T) {
	telling(t, func(r *Recorder, told func() []string) {
		for n := range 1000 {
			r.Note(thing("a"), Topic{Type: "Warning", Reason: "FailedCreate", Title: "cannot create", Why: fmt.Sprintf("error %d %s", n, strings.Repeat("ä", 2000))}, n)
		}
		time.Sleep(2 * time.Second)
		if got := told(); len(got) > maxSeries+1 {
			t.Errorf("%d events", len(got))
		} else if len(got[0]) > 1100 {
			t.Errorf("an event of %d bytes", len(got[0]))
		}
	})
}

func TestEventsAreFlushed(t *testing.T) {
	telling(t, func(r *Recorder, told func() []string) {
		r.Note(thing("a"), created, 1)
		r.Flush(t.Context())
		if len(told()) != 1 {
			t.Errorf("told %q, want the one that was pending", told())
		}
	})
}

// TestMessages: with a title and names, with a title, and without either.
func TestMessages(t *testing.T) {
	telling(t, func(r *Recorder, told func() []string) {
		r.Note(thing("a"), created, 1, 2)
		r.Note(thing("b"), created)
		r.Note(thing("c"), Topic{Type: "Normal", Reason: "Synced", Why: "all is well"})
		time.Sleep(2 * time.Second)
		got := told()
		slices.Sort(got)
		if want := "[Normal SuccessfulCreate created objects 1-2: why Normal SuccessfulCreate created: why Normal Synced all is well]"; fmt.Sprint(got) != want {
			t.Errorf("told %q, want %s", got, want)
		}
	})
}
