package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"tkestack.io/tapp/api/answer"
	"tkestack.io/tapp/api/live"
	apiv1 "tkestack.io/tapp/api/v1"
)

// errSent: the answer has begun, and cannot be another one.
var errSent = errors.New("the stream broke off")

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
	sent   *live.Shown
	health string
}

// show sends what is different from what was sent.
func (s *sender) show(now *live.Shown, health apiv1.Health) error {
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

func (s *sender) showNew(now *live.Shown) error {
	id := answer.TagOf(now.ID, s.visible.tag)
	switch {
	case s.sent == nil && s.last == id:
		return s.send([]byte(": nothing changed\n\n"))
	case now.Single:
		return s.raw("object", id, now.Items[0])
	case s.sent != nil:
		return s.write("change", id, func() error { return now.WriteChange(s, s.sent, s.visible.sees) })
	}
	return s.write("list", id, func() error { return now.WriteAll(s, s.visible.sees) })
}

// fail ends the stream with a Status.
func (s *sender) fail(err error) error {
	if !s.begun {
		return err
	}
	_ = s.event("error", "", answer.StatusOf(err)) // if it fails, the caller has gone
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
