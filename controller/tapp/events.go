package tapp

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"tkestack.io/tapp/controller/write"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
)

// component is who events come from.
const component = "tapp-controller"

// Events of the same kind about the same TApp are told together: instances
// accumulate, the first event follows after tellFirst, and the next ones at
// widening intervals until nothing more is to tell for a while. So a rollout of
// 1,000 instances makes a handful of events, and a single kill one within a
// second. client-go's recorder is not used: its filters drop events that differ
// only in the ids they name.
const (
	tellFirst  = time.Second
	tellSecond = 5 * time.Second
	tellMax    = 5 * time.Minute
	// A series is told early when its TApp settles, but not more than mostHurried
	// times in a row and then every hurryEvery: some TApps settle every few seconds.
	mostHurried = 3
	hurryEvery  = time.Minute
	hurry       = 10 * time.Millisecond // for what else is told of the same moment
	// mostSeries of one TApp; beyond, failures are told by the last one's words.
	mostSeries  = 32
	mostMessage = 1024
)

// topic is what a series of events is about.
type topic struct {
	uid                 types.UID
	kind, reason, title string
	why                 string
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

// recorder tells of what was done.
type recorder struct {
	client  corev1client.EventsGetter
	host    string
	clock   clock.Clock
	metrics *Metrics

	mu     sync.Mutex
	series map[topic]*series
	open   map[types.UID]int // series of a TApp
	sent   int
	wake   chan struct{}
}

func newRecorder(client corev1client.EventsGetter, host string, c clock.Clock, m *Metrics) *recorder {
	return &recorder{client: client, host: host, clock: c, metrics: m,
		series: map[topic]*series{}, open: map[types.UID]int{}, wake: make(chan struct{}, 1)}
}

func (r *recorder) succeeded(t *tappv1.TApp, op operation, a *plan.Action) {
	if op.success == "" {
		return
	}
	r.note(t, topic{kind: corev1.EventTypeNormal, reason: op.success, title: op.past, why: a.Why}, a.ID)
}

func (r *recorder) failed(t *tappv1.TApp, op operation, a *plan.Action, err error) {
	r.note(t, topic{kind: corev1.EventTypeWarning, reason: op.failure, title: "cannot " + op.verb, why: words(err, objectOf(a))}, a.ID)
}

// problem tells of something that the spec gets wrong, without naming instances.
func (r *recorder) problem(t *tappv1.TApp, reason, message string) {
	r.note(t, topic{kind: corev1.EventTypeWarning, reason: reason, why: message}, "")
}

// note adds an instance to a topic's next event.
func (r *recorder) note(t *tappv1.TApp, about topic, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	about.uid = t.UID
	why := about.why
	if r.series[about] == nil && r.open[t.UID] >= mostSeries {
		about.why = ""
	}
	s := r.series[about]
	if s == nil {
		s = &series{about: reference(t)}
		r.series[about] = s
		r.open[t.UID]++
	}
	s.why = why
	if !s.pending {
		s.pending, s.first = true, r.clock.Now()
		s.due = s.first.Add(tellFirst)
		if next := s.told.Add(s.interval); next.After(s.due) {
			s.due = next
		}
		r.rouse()
	}
	if id != "" {
		s.ids = append(s.ids, number(id))
	}
}

// settled tells what is left to tell of a TApp that has come to rest.
func (r *recorder) settled(t *tappv1.TApp) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open[t.UID] == 0 {
		return
	}
	now := r.clock.Now()
	for about, s := range r.series {
		if about.uid == t.UID && s.pending && s.due.After(now.Add(hurry)) && (s.hurried < mostHurried || now.Sub(s.told) >= hurryEvery) {
			s.hurried++
			s.due = now.Add(hurry)
		}
	}
	r.rouse()
}

func (r *recorder) rouse() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// run sends events when they are due, until ctx ends.
func (r *recorder) run(ctx context.Context) {
	for ctx.Err() == nil {
		var timer <-chan time.Time
		if next, ok := r.next(); ok {
			timer = r.clock.After(next.Sub(r.clock.Now()))
		}
		select {
		case <-ctx.Done():
		case <-timer:
			r.send(ctx, false)
		case <-r.wake:
		}
	}
}

// flush sends all that is left to tell.
func (r *recorder) flush(ctx context.Context) { r.send(ctx, true) }

// next is when something is to do.
func (r *recorder) next() (time.Time, bool) {
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
func (r *recorder) send(ctx context.Context, all bool) {
	if ctx.Err() != nil {
		return // a later term may tell
	}
	for _, e := range r.take(all) {
		_, err := r.client.Events(e.Namespace).Create(ctx, e, metav1.CreateOptions{})
		result := "sent"
		if err != nil {
			// An event is not worth a retry: the condition and the log say the same.
			result = "failed"
			if !apierrors.IsNotFound(err) && !write.IsTerminating(err) {
				klog.FromContext(ctx).Error(err, "Event lost", "tapp", klog.KRef(e.Namespace, e.InvolvedObject.Name), "reason", e.Reason, "message", e.Message)
			}
		}
		r.metrics.events.WithLabelValues(e.Reason, result).Inc()
	}
}

// take returns the events that are due, oldest first, and moves their series on. A
// series that had nothing to tell for tellMax has ended.
func (r *recorder) take(all bool) []*corev1.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
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
		out = append(out, r.event(about, s, now))
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

func (r *recorder) event(about topic, s *series, now time.Time) *corev1.Event {
	message := s.why
	switch {
	case len(s.ids) > 0:
		message = fmt.Sprintf("%s %s: %s", about.title, instances(s.ids), s.why)
	case about.title != "":
		message = about.title + ": " + s.why
	}
	if len(message) > mostMessage {
		message = strings.ToValidUTF8(message[:mostMessage-3], "") + "..."
	}
	return &corev1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: s.about.Namespace},
		InvolvedObject:      s.about,
		Type:                about.kind,
		Reason:              about.reason,
		Message:             message,
		Count:               1,
		FirstTimestamp:      metav1.NewTime(s.first),
		LastTimestamp:       metav1.NewTime(now),
		Source:              corev1.EventSource{Component: component, Host: r.host},
		ReportingController: component,
		ReportingInstance:   r.host,
	}
}

func reference(t *tappv1.TApp) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: tappv1.SchemeGroupVersion.String(), Kind: tappv1.Kind,
		Namespace: t.Namespace, Name: t.Name, UID: t.UID, ResourceVersion: t.ResourceVersion,
	}
}

func sortedUnique(ids []int) []int {
	out := slices.Clone(ids)
	slices.Sort(out)
	return slices.Compact(out)
}
