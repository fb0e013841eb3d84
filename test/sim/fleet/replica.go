package fleet

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
}

// key sorts requests by what they are about.
func (r *request) key() string { return r.replica.name + " " + r.to.name + " " + r.About() }

// lateness keeps apart what ends at one instant.
func lateness(about string) time.Duration {
	h := fnv.New32a()
	_, _ = io.WriteString(h, about)
	return time.Duration(h.Sum32() % uint32(time.Millisecond))
}

// replica is a process of the controller: the production code, unchanged, behind a
// network of ours.
type replica struct {
	name     string
	world    *world
	stop     context.CancelFunc
	ended    chan struct{}
	stopping bool
	// heard is when a watch or a list told it of the parts of a member last.
	heard map[string]time.Time
	// told is the version of the hub up to which a watch told it of AppSets.
	told atomic.Int64

	mu    sync.Mutex
	dead  bool
	links []*link
}

func (w *world) start() error {
	w.started++
	r := &replica{name: "c" + string(rune('a'+(w.started-1)%26)), world: w, ended: make(chan struct{}), heard: map[string]time.Time{}}
	c := controller.Defaults()
	c.Controllers = []string{controller.KindAppSet}
	c.CreateCRD = false
	c.Election.Enabled = false
	c.Workers = 2
	c.Clock = w.clock
	c.REST = &rest.Config{Host: "http://hub", Transport: r}
	c.Fleet.ClusterNamespace = registry
	c.Fleet.Network = r
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
	links := r.links
	r.mu.Unlock()
	r.stop()
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
	if r.isDead() {
		return nil, errDead
	}
	q.replica, q.issued, q.answer = r, time.Now(), make(chan *apiserver.Answer, 1)
	q.told = r.told.Load()
	var closed chan struct{}
	if q.link != nil {
		closed = q.link.closed
	}
	r.world.submit(q)
	select {
	case a := <-q.answer:
		return a.Response(h)
	case <-closed:
		r.world.abandon(q)
		return nil, errClosed
	case <-h.Context().Done():
		r.world.abandon(q)
		time.Sleep(lateness(q.key())) //nolint:forbidigo // of virtual time
		return nil, h.Context().Err()
	}
}
