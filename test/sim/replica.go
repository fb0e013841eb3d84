package sim

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/controller"
	"tkestack.io/tapp/test/sim/apiserver"
)

// errDead is what a process that has crashed gets for its requests. It is none of the
// API server's.
var errDead = errors.New("connect: connection refused")

// replica is a process of the controller: the production code, unchanged, behind a
// transport of ours.
type replica struct {
	name  string
	world *world
	stop  context.CancelFunc
	ended chan struct{}
	// told are the versions that its caches show, by resource, and beliefs what its
	// last requests for a TApp were made on.
	told    map[string]int64
	beliefs map[string]*belief

	mu   sync.Mutex
	dead bool // crashed: nothing that it asks for from now on reaches the API server

	stopping bool // it was told to end in order
}

// start a process of the controller. Two that run at once both believe that they
// lead.
func (w *world) start() error {
	w.started++
	r := &replica{name: "c" + string(rune('a'+(w.started-1)%26)), world: w, ended: make(chan struct{}),
		told: map[string]int64{}, beliefs: map[string]*belief{}}
	c := controller.Defaults()
	c.CreateCRD = false
	c.Clock = w.clock
	c.Election.Enabled = false
	c.Workers = 2
	c.DeletePodAfterAppFinish = !w.has(classFinish)
	if w.has(classNodes) {
		c.NodesPerSync = 1
	}
	c.REST = &rest.Config{Host: "http://api", Transport: r}
	process, err := controller.New(c)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(klog.NewContext(context.Background(), logr.Discard()))
	r.stop = stop
	w.replicas = append(w.replicas, r)
	go func() {
		defer close(r.ended)
		_ = process.Run(ctx) // it has no way to fail without CRDs and election
	}()
	return nil
}

// crash ends the process at once. What it has asked for may still arrive.
func (r *replica) crash() {
	r.mu.Lock()
	r.dead = true
	r.mu.Unlock()
	r.stop()
}

func (r *replica) isDead() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dead
}

// isFollowed says whether a process that began later leads by now.
func (r *replica) isFollowed() bool {
	all := r.world.replicas
	return len(all) > 0 && all[len(all)-1] != r
}

func (r *replica) hasEnded() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// RoundTrip implements http.RoundTripper: the request waits until the simulation
// carries it out.
func (r *replica) RoundTrip(h *http.Request) (*http.Response, error) {
	if r.isDead() {
		return nil, errDead
	}
	asked, err := apiserver.Read(h)
	if err != nil {
		return nil, err
	}
	q := &request{Request: asked, replica: r, issued: r.world.now(), answer: make(chan *apiserver.Answer, 1)}
	r.world.submit(q)
	select {
	case a := <-q.answer:
		return a.Response(h)
	case <-h.Context().Done():
		r.world.abandon(q)
		time.Sleep(q.lateness()) //nolint:forbidigo // of virtual time
		return nil, h.Context().Err()
	}
}
