package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"tkestack.io/tapp/api/answer"
	"tkestack.io/tapp/api/live"
	apiv1 "tkestack.io/tapp/api/v1"
)

// Heartbeat is how often a stream that has nothing to say sends a comment: proxies end
// what is silent, and clients notice a server that is gone.
const Heartbeat = 15 * time.Second

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
func (a *API) show(q *request, t *live.Topic, v visibility) error {
	if q.flag("watch") {
		return a.stream(q, t, v)
	}
	now, health, err := t.Current(q.ctx())
	if err != nil {
		return err
	}
	if now.Single {
		return q.write(answer.TagOf(now.ID, health.Degraded), withHealth(now.Items[0], health))
	}
	return q.writePage(now, health, v)
}

// withHealth adds the members of Health to an object.
func withHealth(object []byte, health apiv1.Health) []byte {
	members := membersOf(health)
	if len(members) == 0 {
		return object
	}
	out := append([]byte{}, object[:len(object)-1]...)
	out = append(out, ',')
	out = append(out, members...)
	return append(out, '}')
}

// membersOf a Health in a document, without braces; empty where all is well.
func membersOf(h apiv1.Health) []byte {
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
func (q *request) writePage(s *live.Shown, health apiv1.Health, v visibility) error {
	limit, err := q.number("limit", defaultLimit, 1, maxLimit)
	if err != nil {
		return err
	}
	page := s.Page(q.r.URL.Query().Get("continue"), limit, v.sees, membersOf(health))
	return q.write(answer.TagOf(s.ID, v.tag, health.Degraded, q.r.URL.RawQuery), page)
}

// stream sends what a topic shows, and what changes, until the caller leaves or may not any
// more. It remembers only what it sent last: a reader that is slow gets fewer and larger
// changes, and one that takes nothing for long is dropped.
func (a *API) stream(q *request, t *live.Topic, v visibility) error {
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
	beat, recheck := time.NewTicker(Heartbeat), time.NewTicker(a.Limits.Recheck)
	defer beat.Stop()
	defer recheck.Stop()
	for {
		now, health, next, failed := t.Look()
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
			case <-a.topics.Context().Done():
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

// recheck asks again who the caller is, and what he may. That nobody can be asked ends no
// stream: what is shown is not current then anyway.
func (a *API) recheck(q *request, s *sender) error {
	caller, err := a.Authenticator.Authenticate(q.ctx(), q.r)
	switch {
	case apierrors.IsUnauthorized(err):
		return err
	case err != nil:
		return nil
	case caller.Key != q.caller.Key:
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
