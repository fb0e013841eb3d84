package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// heartbeat is how often a stream that has nothing to say sends a comment: proxies end
// what is silent, and clients notice a server that is gone.
const heartbeat = 15 * time.Second

// visibility of a list: which items the caller may see. The zero value is all.
type visibility struct {
	// sees says whether a key is seen; nil: all are.
	sees func(key string) bool
	// tag is different for callers who see others.
	tag string
	// again asks anew what the caller may, for streams.
	again func() (visibility, error)
}

// granted checks the query and the rights of a caller, who sees all or nothing. For a stream
// the rights are checked again and again.
func (q *request) granted(rights ...func() error) (visibility, error) {
	check := func() error { return firstError(rights...) }
	v := visibility{again: func() (visibility, error) { return visibility{}, check() }}
	return v, firstError(q.checkQuery, check)
}

// show answers with what a topic shows: at once, or as a stream.
func (a *API) show(q *request, t *topic, v visibility) error {
	if q.flag("watch") {
		return a.stream(q, t, v)
	}
	now, health, err := t.current(q.ctx())
	if err != nil {
		return err
	}
	if now.single {
		return q.write(tagOf(now.id, health.Degraded), withHealth(now.items[0], health))
	}
	return q.writePage(now, health, v)
}

// withHealth adds the members of Health to an object.
func withHealth(object []byte, health Health) []byte {
	members := health.members()
	if len(members) == 0 {
		return object
	}
	out := append([]byte{}, object[:len(object)-1]...)
	out = append(out, ',')
	out = append(out, members...)
	return append(out, '}')
}

// members of a document, without braces; empty where all is well.
func (h Health) members() []byte {
	if h.Degraded == "" {
		return nil
	}
	text, err := json.Marshal(h)
	if err != nil || len(text) < 2 {
		return nil
	}
	return text[1 : len(text)-1]
}

const (
	defaultLimit = 500
	maxLimit     = 5000
)

// writePage answers with a page of a list.
func (q *request) writePage(s *shown, health Health, v visibility) error {
	limit, err := q.number("limit", defaultLimit, 1, maxLimit)
	if err != nil {
		return err
	}
	after := q.r.URL.Query().Get("continue")
	var items [][]byte
	p := page{degraded: health.members()}
	last, more := "", false
	for i, key := range s.keys {
		if v.sees != nil && !v.sees(key) {
			continue
		}
		p.total++
		switch {
		case after != "" && s.compare(key, after) <= 0:
		case len(items) < limit:
			items, last = append(items, s.items[i]), key
		default:
			more = true
		}
	}
	if more {
		p.next = last
	}
	return q.write(tagOf(s.id, v.tag, health.Degraded, q.r.URL.RawQuery), s.list(items, p))
}

// stream sends what a topic shows, and what changes, until the caller leaves or may not any
// more. It remembers only what it sent last: a reader that is slow gets fewer and larger
// changes, and one that takes nothing for long is dropped.
func (a *API) stream(q *request, t *topic, v visibility) error {
	end, err := a.beginStream(q)
	if err != nil {
		return err
	}
	defer end()
	s := &sender{q: q, control: http.NewResponseController(q.w), limit: a.Limits.Write, visible: v, last: q.r.Header.Get("Last-Event-ID")}
	if q.r.Method == http.MethodHead {
		q.w.Header().Set("Content-Type", "text/event-stream")
		q.w.WriteHeader(http.StatusOK)
		return nil
	}
	beat, recheck := time.NewTicker(heartbeat), time.NewTicker(a.Limits.Recheck)
	defer beat.Stop()
	defer recheck.Stop()
	for {
		now, health, next, failed := t.look()
		switch {
		case failed != nil && !s.begun:
			return failed
		case failed != nil && !apierrors.IsServiceUnavailable(failed):
			a.metrics.ended.WithLabelValues("gone").Inc()
			return s.fail(failed)
		case failed != nil || now != nil:
			err = s.show(now, health)
		}
		if err == nil {
			select {
			case <-next:
				continue
			case <-beat.C:
				err = s.send([]byte(": still here\n\n"))
			case <-recheck.C:
				if denied := a.recheck(q, s); denied != nil {
					a.metrics.ended.WithLabelValues("denied").Inc()
					return s.fail(denied)
				}
			case <-q.ctx().Done():
				return nil
			case <-a.feeds.ctx.Done():
				a.metrics.ended.WithLabelValues("ending").Inc()
				return s.fail(apierrors.NewServiceUnavailable("the server is ending; connect again"))
			}
		}
		if err != nil {
			// HTTP/1 ends the context by itself when a write took too long.
			if q.ctx().Err() == nil || errors.Is(err, os.ErrDeadlineExceeded) {
				a.metrics.ended.WithLabelValues("slow").Inc()
			}
			return errSent
		}
	}
}

// errSent: the answer has begun, and cannot be another one.
var errSent = errors.New("the stream broke off")

// recheck asks again who the caller is, and what he may. That nobody can be asked ends no
// stream: what is shown is not current then anyway.
func (a *API) recheck(q *request, s *sender) error {
	caller, err := a.Authenticator.Authenticate(q.ctx(), q.r)
	switch {
	case apierrors.IsUnauthorized(err):
		return err
	case err != nil:
		return nil
	case caller.key != q.caller.key:
		q.caller = caller
	}
	if s.visible.again == nil {
		return nil
	}
	v, err := s.visible.again()
	switch {
	case apierrors.IsForbidden(err):
		return err
	case err != nil:
		return nil
	case v.tag != s.visible.tag: // another part of the list: from the beginning
		v.again = s.visible.again
		s.visible, s.sent, s.last = v, nil, ""
	}
	return nil
}

// sender of the events of one stream.
type sender struct {
	q       *request
	control *http.ResponseController
	limit   time.Duration
	// room is how much may be written before the limit begins anew.
	room    int
	visible visibility
	begun   bool // the answer has begun
	told    bool // the health was told
	// last is the id that the client has, from before.
	last string
	// sent is what the client has seen, and health what it was told.
	sent   *shown
	health string
}

// show sends what is different from what was sent.
func (s *sender) show(now *shown, health Health) error {
	if now != nil && now != s.sent {
		if err := s.showNew(now); err != nil {
			return err
		}
		s.sent, s.last = now, ""
	}
	if health.Degraded != s.health || !s.told {
		s.health, s.told = health.Degraded, true
		return s.event("health", "", health)
	}
	return nil
}

func (s *sender) showNew(now *shown) error {
	id := tagOf(now.id, s.visible.tag)
	switch {
	case s.sent == nil && s.last == id:
		return s.send([]byte(": nothing changed\n\n"))
	case now.single:
		return s.raw("object", id, now.items[0])
	case s.sent != nil:
		return s.write("change", id, func() error { return now.writeChange(s, s.sent, s.visible.sees) })
	}
	return s.write("list", id, func() error { return now.writeAll(s, s.visible.sees) })
}

// fail ends the stream with a Status.
func (s *sender) fail(err error) error {
	if !s.begun {
		return err
	}
	_ = s.event("error", "", statusOf(err)) // if it fails, the caller has gone
	return errSent
}

func (s *sender) event(name, id string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("writing an event: %w", err)
	}
	return s.raw(name, id, text)
}

// raw sends an event. JSON has no line breaks.
func (s *sender) raw(name, id string, data []byte) error {
	return s.write(name, id, func() error {
		_, err := s.Write(data)
		return err
	})
}

// write an event, whose data a function writes.
func (s *sender) write(name, id string, data func() error) error {
	head := "event: " + name + "\n"
	if id != "" {
		head += "id: " + id + "\n"
	}
	if _, err := s.Write([]byte(head + "data: ")); err != nil {
		return err
	}
	if err := data(); err != nil {
		return err
	}
	return s.send([]byte("\n\n"))
}

// send the last bytes of something, and all before.
func (s *sender) send(last []byte) error {
	if _, err := s.Write(last); err != nil {
		return err
	}
	if err := s.control.Flush(); err != nil {
		return err
	}
	s.room = 0
	// HTTP/2 would end the stream then, also while nothing is written.
	if err := s.control.SetWriteDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// piece is for how much at a time a reader has the limit, in bytes, so that one that is merely
// slow has its time.
const piece = 64 << 10

// Write a part of something, which `send` ends.
func (s *sender) Write(part []byte) (int, error) {
	if !s.begun {
		s.begun = true
		h := s.q.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no") // proxies are to pass events on
		s.q.w.WriteHeader(http.StatusOK)
	}
	written := 0
	for len(part) > 0 {
		if s.room == 0 {
			if err := s.control.SetWriteDeadline(time.Now().Add(s.limit)); err != nil && !errors.Is(err, http.ErrNotSupported) {
				return written, err
			}
			s.room = piece
		}
		n, err := s.q.w.Write(part[:min(len(part), s.room)])
		written, part, s.room = written+n, part[n:], s.room-n
		if err != nil {
			return written, err
		}
	}
	return written, nil
}
