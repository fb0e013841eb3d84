package app

import (
	"context"
	"errors"
	"hash/fnv"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/controller"
	"tkestack.io/tapp/test/sim/apiserver"
)

var errDead = errors.New("connect: connection refused")

// request of a process to the API server.
type request struct {
	*apiserver.Request
	replica   *replica
	answer    chan *apiserver.Answer
	abandoned atomic.Bool // nobody waits for the answer
}

// key sorts requests by what they are about.
func (r *request) key() string { return r.replica.name + " " + r.About() }

// lateness keeps apart what ends at one instant.
func (r *request) lateness() time.Duration {
	h := fnv.New32a()
	_, _ = io.WriteString(h, r.key())
	return time.Duration(h.Sum32() % uint32(time.Millisecond))
}

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

func (x *watching) key() string { return x.replica.name + " " + x.Resource }

// replica is a process of the controller: the production code, unchanged, behind a
// transport of ours.
type replica struct {
	name  string
	world *world
	stop  context.CancelFunc
	ended chan struct{}

	mu   sync.Mutex
	dead bool
}

func (w *world) start() error {
	w.started++
	r := &replica{name: "c" + string(rune('a'+(w.started-1)%26)), world: w, ended: make(chan struct{})}
	c := controller.Defaults()
	c.Controllers = []string{controller.KindApp}
	c.CreateCRD = false
	c.Election.Enabled = false
	c.Workers = 2
	c.Clock = w.clock
	c.REST = &rest.Config{Host: "http://api", Transport: r}
	process, err := controller.New(c)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(klog.NewContext(context.Background(), logr.Discard()))
	r.stop = stop
	w.replicas = append(w.replicas, r)
	w.say("%s starts", r.name)
	go func() {
		defer close(r.ended)
		_ = process.Run(ctx) // it has no way to fail without CRDs and election
	}()
	return nil
}

func (r *replica) isDead() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dead
}

func (r *replica) hasEnded() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// crash ends the process at once. What it has asked for may still arrive.
func (r *replica) crash() {
	r.mu.Lock()
	r.dead = true
	r.mu.Unlock()
	r.stop()
}

// RoundTrip implements http.RoundTripper: the request waits until the simulation carries
// it out.
func (r *replica) RoundTrip(h *http.Request) (*http.Response, error) {
	if r.isDead() {
		return nil, errDead
	}
	asked, err := apiserver.Read(h)
	if err != nil {
		return nil, err
	}
	q := &request{Request: asked, replica: r, answer: make(chan *apiserver.Answer, 1)}
	r.world.submit(q)
	select {
	case a := <-q.answer:
		return a.Response(h)
	case <-h.Context().Done():
		q.abandoned.Store(true)
		time.Sleep(q.lateness()) //nolint:forbidigo // of virtual time
		return nil, h.Context().Err()
	}
}
