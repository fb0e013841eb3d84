package sim

import (
	"sync/atomic"
	"time"

	"tkestack.io/tapp/test/sim/apiserver"
)

// request of a process.
type request struct {
	*apiserver.Request
	replica   *replica
	issued    time.Time
	answer    chan *apiserver.Answer
	abandoned atomic.Bool // nobody waits for the answer
	// belief that it was made on; nil: it is of no TApp.
	belief *belief
	// joined are those that a list may be a part of.
	joined  []*belief
	settled bool // the belief knows that it is over
	unsure  bool // the answer says nothing of what came of it
}

// Order sorts requests by what they are about.
func (r *request) Order() string { return r.replica.Name + " " + r.About() }

// actor that writes for the request.
func (r *request) actor(now time.Time) apiserver.Actor {
	return apiserver.Actor{By: r.replica.Name, At: now, Cause: r}
}

// causeOf a change; nil: it was no process of the controller.
func causeOf(c *change) *request {
	r, _ := c.Cause.(*request)
	return r
}

// watching is an open watch of a process.
type watching struct {
	*apiserver.Watch
	replica *replica
}

// key sorts watches.
func (w *watching) key() string { return w.replica.Name + " " + w.Resource }
