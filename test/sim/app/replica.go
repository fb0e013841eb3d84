package app

import (
	"net/http"
	"sync/atomic"

	"tkestack.io/tapp/controller"
	"tkestack.io/tapp/test/sim/apiserver"
	"tkestack.io/tapp/test/sim/process"
)

// request of a process to the API server.
type request struct {
	*apiserver.Request
	replica   *replica
	answer    chan *apiserver.Answer
	abandoned atomic.Bool // nobody waits for the answer
}

// Order sorts requests by what they are about.
func (r *request) Order() string { return r.replica.Name + " " + r.About() }

// site is the place of the controller that a write comes from.
func (r *request) site() string {
	if r.Sub != "" {
		return r.Verb + " " + r.Resource + "/" + r.Sub
	}
	return r.Verb + " " + r.Resource
}

// watching is an open watch of a process.
type watching struct {
	*apiserver.Watch
	replica *replica
}

func (x *watching) key() string { return x.replica.Name + " " + x.Resource }

// replica is a process of the controller, behind a transport of ours.
type replica struct {
	*process.Process
	world *world
}

func (w *world) start() error {
	w.started++
	r := &replica{process.New(w.started), w}
	c := process.Config(w.clock, "http://api", r)
	c.Controllers = []string{controller.KindApp}
	if err := r.Start(c); err != nil {
		return err
	}
	w.replicas = append(w.replicas, r)
	w.say("%s starts", r.Name)
	return nil
}

// RoundTrip implements http.RoundTripper: the request waits until the simulation carries
// it out.
func (r *replica) RoundTrip(h *http.Request) (*http.Response, error) {
	if r.IsDead() {
		return nil, process.ErrDead
	}
	asked, err := apiserver.Read(h)
	if err != nil {
		return nil, err
	}
	q := &request{Request: asked, replica: r, answer: make(chan *apiserver.Answer, 1)}
	r.world.desk.Submit(q)
	return process.Await(h, q.Order(), q.answer, func() { q.abandoned.Store(true) })
}
