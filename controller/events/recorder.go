// Package events tells of what is done with objects, of any kind: in series, with the
// ids of what they name in ranges, rather than one by one. It knows no kind.
package events

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"tkestack.io/tapp/controller/write"
	"tkestack.io/tapp/process/parallel"
)

// Events of the same topic about the same object are told together: ids accumulate, the
// first event follows after tellFirst, and the next ones at widening intervals until
// nothing more is to tell for a while. So a rollout of 1,000 instances makes a handful
// of events, and a single kill one within a second. client-go's recorder is not used:
// its filters drop events that differ only in the ids they name.
const (
	tellFirst  = time.Second
	tellSecond = 5 * time.Second
	tellMax    = 5 * time.Minute
	// A series is told early when its object settles, but not more than maxHurried
	// times in a row and then every hurryEvery: some objects settle every few seconds.
	maxHurried = 3
	hurryEvery = time.Minute
	hurry      = 10 * time.Millisecond // for what else is told of the same moment
	// maxSeries of one object; beyond, failures are told by the last one's words.
	maxSeries  = 32
	maxMessage = 1024
)

// Topic is what a series of events is about.
type Topic struct {
	// Type is Normal or Warning.
	Type, Reason string
	// Title goes before the names of what the event is about; it may be empty.
	Title string
	Why   string
}

// topic of one object.
type topic struct {
	uid types.UID
	Topic
}

// series of events about one topic.
type series struct {
	about    corev1.ObjectReference
	why      string
	ids      []int
	first    time.Time // of what is not told yet
	pending  bool
	told     time.Time // the last event
	due      time.Time // the next one, or the end of the series
	interval time.Duration
	hurried  int // how often settled brought an event forward
}

// Options of a Recorder.
type Options struct {
	Client corev1client.EventsGetter
	// Component and Host are who events come from.
	Component, Host string
	Clock           clock.Clock
	// Names names by their ids what an event is about, such as "instances 0-3"; nil: the
	// kind's events name no ids.
	Names func(ids []int) string
	// Sent counts events, if it is not nil.
	Sent *prometheus.CounterVec // by reason and result
	// Contain calls f, which works for one event, and returns a panic as an error; nil:
	// nobody counts them.
	Contain func(f func() error) error
}

// Recorder tells of what was done.
type Recorder struct {
	Options

	mu     sync.Mutex
	series map[topic]*series
	open   map[types.UID]int // series of an object
	sent   int
	wake   chan struct{}
}

// NewRecorder makes a recorder, which sends nothing until Run is called.
func NewRecorder(o Options) *Recorder {
	if o.Contain == nil {
		o.Contain = func(f func() error) error { return parallel.Contain(func() {}, f) }
	}
	return &Recorder{Options: o, series: map[topic]*series{}, open: map[types.UID]int{}, wake: make(chan struct{}, 1)}
}

// Note adds ids to the next event of an object on a topic.
func (r *Recorder) Note(object corev1.ObjectReference, on Topic, ids ...int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	about := topic{object.UID, on}
	if r.series[about] == nil && r.open[object.UID] >= maxSeries {
		about.Why = ""
	}
	s := r.series[about]
	if s == nil {
		s = &series{about: object}
		r.series[about] = s
		r.open[object.UID]++
	}
	s.why = on.Why
	if !s.pending {
		s.pending, s.first = true, r.Clock.Now()
		s.due = s.first.Add(tellFirst)
		if next := s.told.Add(s.interval); next.After(s.due) {
			s.due = next
		}
		r.rouse()
	}
	s.ids = append(s.ids, ids...)
}

// Settled tells soon what is left to tell of an object that has come to rest.
func (r *Recorder) Settled(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open[uid] == 0 {
		return
	}
	now := r.Clock.Now()
	for about, s := range r.series {
		if about.uid == uid && s.pending && s.due.After(now.Add(hurry)) && (s.hurried < maxHurried || now.Sub(s.told) >= hurryEvery) {
			s.hurried++
			s.due = now.Add(hurry)
		}
	}
	r.rouse()
}

func (r *Recorder) rouse() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run sends events when they are due, until ctx ends.
func (r *Recorder) Run(ctx context.Context) {
	for ctx.Err() == nil {
		var timer <-chan time.Time
		if next, ok := r.next(); ok {
			timer = r.Clock.After(next.Sub(r.Clock.Now()))
		}
		select {
		case <-ctx.Done():
		case <-timer:
			r.send(ctx, false)
		case <-r.wake:
		}
	}
}

// Flush sends all that is left to tell.
func (r *Recorder) Flush(ctx context.Context) { r.send(ctx, true) }

// next is when something is to do.
func (r *Recorder) next() (time.Time, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out time.Time
	for _, s := range r.series {
		if out.IsZero() || s.due.Before(out) {
			out = s.due
		}
	}
	return out, !out.IsZero()
}

// send sends the events that are due, or all.
func (r *Recorder) send(ctx context.Context, all bool) {
	if ctx.Err() != nil {
		return // a later term may tell
	}
	for _, e := range r.take(ctx, all) {
		err := r.Contain(func() error {
			_, err := r.Client.Events(e.Namespace).Create(ctx, e, metav1.CreateOptions{})
			return err
		})
		result := "sent"
		if err != nil {
			// An event is not worth a retry: the condition and the log say the same.
			result = "failed"
			if !apierrors.IsNotFound(err) && !write.IsTerminating(err) {
				klog.FromContext(ctx).Error(err, "Event lost", "object", klog.KRef(e.Namespace, e.InvolvedObject.Name), "reason", e.Reason, "message", e.Message)
			}
		}
		if r.Sent != nil {
			r.Sent.WithLabelValues(e.Reason, result).Inc()
		}
	}
}

// take returns the events that are due, oldest first, and moves their series on. A
// series that had nothing to tell for tellMax has ended.
func (r *Recorder) take(ctx context.Context, all bool) []*corev1.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.Clock.Now()
	var out []*corev1.Event
	for about, s := range r.series {
		switch {
		case s.due.After(now) && !all:
			continue
		case !s.pending:
			delete(r.series, about)
			if r.open[about.uid]--; r.open[about.uid] == 0 {
				delete(r.open, about.uid)
			}
			continue
		}
		if err := r.Contain(func() error {
			out = append(out, r.event(about, s, now))
			return nil
		}); err != nil {
			klog.FromContext(ctx).Error(err, "Event lost", "object", klog.KRef(s.about.Namespace, s.about.Name), "reason", about.Reason, "message", s.why)
		}
		s.pending, s.ids, s.told = false, nil, now
		s.interval = min(max(2*s.interval, tellSecond), tellMax)
		s.due = now.Add(tellMax)
	}
	slices.SortFunc(out, func(a, b *corev1.Event) int {
		return cmp.Or(a.FirstTimestamp.Compare(b.FirstTimestamp.Time),
			cmp.Compare(a.InvolvedObject.Name, b.InvolvedObject.Name), cmp.Compare(a.Message, b.Message))
	})
	for _, e := range out {
		r.sent++
		e.Name = fmt.Sprintf("%s.%x.%d", e.InvolvedObject.Name, now.UnixNano(), r.sent)
	}
	return out
}

func (r *Recorder) event(about topic, s *series, now time.Time) *corev1.Event {
	message := s.why
	switch {
	case len(s.ids) > 0 && r.Names != nil:
		message = fmt.Sprintf("%s %s: %s", about.Title, r.Names(s.ids), s.why)
	case about.Title != "":
		message = about.Title + ": " + s.why
	}
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage-3], "") + "..."
	}
	return &corev1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: s.about.Namespace},
		InvolvedObject:      s.about,
		Type:                about.Type,
		Reason:              about.Reason,
		Message:             message,
		Count:               1,
		FirstTimestamp:      metav1.NewTime(s.first),
		LastTimestamp:       metav1.NewTime(now),
		Source:              corev1.EventSource{Component: r.Component, Host: r.Host},
		ReportingController: r.Component,
		ReportingInstance:   r.Host,
	}
}
