// Package process runs the controller in a simulation: the production code, unchanged,
// over a transport of the simulation's.
package process

import (
	"context"
	"errors"
	"hash/fnv"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"tkestack.io/tapp/controller"
	"tkestack.io/tapp/test/sim/apiserver"
)

// ErrDead is what a process that has crashed gets for its requests. It is none of an API
// server's.
var ErrDead = errors.New("connect: connection refused")

// Process of the controller.
type Process struct {
	Name  string
	stop  context.CancelFunc
	ended chan struct{}

	mu   sync.Mutex
	dead bool // crashed: nothing that it asks for from now on arrives
}

// New is the process of that number in a run, from 1 on. It has not started.
func New(number int) *Process {
	return &Process{Name: "c" + string(rune('a'+(number-1)%26)), ended: make(chan struct{})}
}

// Config of a process. It makes no definitions, and two that run at once both believe that
// they lead.
func Config(c clock.WithTicker, host string, transport http.RoundTripper) controller.Config {
	out := controller.Defaults()
	out.CreateCRD = false
	out.Election.Enabled = false
	out.Workers = 2
	out.SchemaInterval = 0 // no schema is served
	out.Clock = c
	out.REST = &rest.Config{Host: host, Transport: transport}
	return out
}

// Start it.
func (p *Process) Start(c controller.Config) error {
	made, err := controller.New(c)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(klog.NewContext(context.Background(), logr.New(keys{})))
	p.stop = stop
	go func() {
		defer close(p.ended)
		_ = made.Run(ctx) // it has no way to fail without CRDs and election
	}()
	return nil
}

// Stop tells it to end in order.
func (p *Process) Stop() { p.stop() }

// Crash ends it at once. What it has asked for may still arrive.
func (p *Process) Crash() {
	p.mu.Lock()
	p.dead = true
	p.mu.Unlock()
	p.stop()
}

// IsDead says whether it crashed.
func (p *Process) IsDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// HasEnded says whether nothing of it runs any more.
func (p *Process) HasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Lateness is how much later than at its end somebody hears that the time of a request is
// up, by what it is about. Those of one moment end at one moment, too, and what comes of
// them would be in any order.
func Lateness(about string) time.Duration {
	h := fnv.New32a()
	_, _ = io.WriteString(h, about)
	return time.Duration(h.Sum32() % uint32(time.Millisecond))
}

// running is a process, or what a simulation makes of it.
type running interface {
	IsDead() bool
	HasEnded() bool
}

// Alive are those that run, and have not crashed.
func Alive[P running](all []P) []P {
	return slices.DeleteFunc(slices.Clone(all), func(p P) bool { return p.IsDead() || p.HasEnded() })
}

// mostSeconds that processes may take to end.
const mostSeconds = 300

// End kills all that did not crash, and lets seconds pass until nothing of them is left.
func End[P running](all []P, kill func(P), pass func(time.Duration)) {
	for _, p := range all {
		if !p.IsDead() {
			kill(p)
		}
	}
	for range mostSeconds {
		synctest.Wait()
		if !slices.ContainsFunc(all, func(p P) bool { return !p.HasEnded() }) {
			return
		}
		pass(time.Second)
	}
}

// Await the answer to a request. abandon is called when nobody waits for it any more.
func Await(h *http.Request, key string, answer <-chan *apiserver.Answer, abandon func()) (*http.Response, error) {
	select {
	case a := <-answer:
		return a.Response(h)
	case <-h.Context().Done():
		abandon()
		time.Sleep(Lateness(key)) //nolint:forbidigo // of virtual time
		return nil, h.Context().Err()
	}
}
