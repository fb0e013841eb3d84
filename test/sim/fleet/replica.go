package fleet

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"tkestack.io/tapp/controller"
	"tkestack.io/tapp/test/sim/apiserver"
	"tkestack.io/tapp/test/sim/process"
)

// request of a process to the hub or a member.
type request struct {
	*apiserver.Request
	replica   *replica
	to        *cluster
	born      int   // of the cluster, when the connection was made
	link      *link // nil: to the hub
	token     string
	issued    time.Time
	told      int64 // see replica, when it was issued
	answer    chan *apiserver.Answer
	abandoned atomic.Bool
	// before it the process last wrote to the same part.
	before time.Time
}

// Order sorts requests by what they are about.
func (r *request) Order() string { return r.replica.Name + " " + r.to.name + " " + r.About() }

// replica is a process of the controller, behind a network of ours.
type replica struct {
	*process.Process
	world    *world
	stopping bool
	// heard is when a watch or a list told it of the parts of a member last.
	heard map[string]time.Time
	// told is the version of the hub up to which a watch told it of AppSets.
	told atomic.Int64

	mu    sync.Mutex
	links []*link
	silences
}

func (w *world) start() error {
	w.started++
	r := &replica{Process: process.New(w.started), world: w, heard: map[string]time.Time{}, silences: newSilences()}
	c := process.Config(w.clock, "http://hub", r)
	c.Controllers = []string{controller.KindAppSet}
	c.Fleet.ClusterNamespace = registry
	c.Fleet.Network = r
	c.Charts.Fetch = r.fetch
	if w.plan.Charted {
		c.Charts.SweepAge = sweepAge
	}
	if err := r.Start(c); err != nil {
		return err
	}
	w.replicas = append(w.replicas, r)
	w.say("%s starts", r.Name)
	return nil
}

// crash ends the process at once. What it has asked for may still arrive.
func (r *replica) crash() {
	r.Crash()
	r.mu.Lock()
	links := r.links
	r.mu.Unlock()
	for _, l := range links {
		_ = l.Close()
	}
}

// RoundTrip implements http.RoundTripper, to the hub.
func (r *replica) RoundTrip(h *http.Request) (*http.Response, error) {
	asked, err := apiserver.Read(h)
	if err != nil {
		return nil, err
	}
	return r.ask(h, &request{Request: asked, to: r.world.hub, born: r.world.hub.births})
}

// ask waits until the simulation carries the request out.
func (r *replica) ask(h *http.Request, q *request) (*http.Response, error) {
	if r.IsDead() {
		return nil, process.ErrDead
	}
	q.replica, q.issued, q.answer = r, time.Now(), make(chan *apiserver.Answer, 1)
	q.told = r.told.Load()
	if q.link != nil && q.IsWrite() && q.Resource == parts {
		q.before = r.attempt(q.to.name, q.Namespace+"/"+q.Name, q.issued)
	}
	var closed chan struct{}
	if q.link != nil {
		closed = q.link.closed
	}
	r.world.desk.Submit(q)
	select {
	case a := <-q.answer:
		return a.Response(h)
	case <-closed:
		q.abandoned.Store(true)
		return nil, errClosed
	case <-h.Context().Done():
		q.abandoned.Store(true)
		time.Sleep(process.Lateness(q.Order())) //nolint:forbidigo // of virtual time
		return nil, h.Context().Err()
	}
}
