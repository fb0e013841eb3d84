//go:build cluster

package fleet

import (
	"context"
	"fmt"
	"net"
	"sync"
)

// direction of bytes on a wire.
type direction int

const (
	toMember direction = iota // requests
	toHub                     // answers
)

// wire is the network between the hub and a member: a TCP proxy that can hold bytes back.
// Held bytes arrive when the wire heals, as those of a network that lost packets do: what
// was asked for long ago is done late.
type wire struct {
	net.Listener
	target string

	mu    sync.Mutex
	held  [2]chan struct{} // of each direction; closed when it heals, nil: nothing is held
	ended chan struct{}
	conns map[net.Conn]bool
}

// newWire leads to an address, until it is closed.
func newWire(ctx context.Context, target string) (*wire, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("a wire to %s: %w", target, err)
	}
	w := &wire{Listener: l, target: target, ended: make(chan struct{}), conns: map[net.Conn]bool{}}
	go w.serve()
	return w, nil
}

func (w *wire) serve() {
	for {
		hub, err := w.Accept()
		if err != nil {
			return // it was closed
		}
		go w.join(hub)
	}
}

// join a connection of the hub with one to the member.
func (w *wire) join(hub net.Conn) {
	defer func() { _ = hub.Close() }()
	if !w.pass(toMember) { // a connection is not made while requests are lost
		return
	}
	member, err := net.Dial("tcp", w.target)
	if err != nil {
		return
	}
	defer func() { _ = member.Close() }()
	w.keep(hub, member)
	defer w.forget(hub, member)
	var both sync.WaitGroup
	both.Go(func() { w.carry(member, hub, toMember) })
	both.Go(func() { w.carry(hub, member, toHub) })
	both.Wait()
}

// carry bytes one way, until an end is closed; then the other is closed too.
func (w *wire) carry(to, from net.Conn, d direction) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if !w.pass(d) {
				return
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// pass waits while bytes are held; false: the wire was closed.
func (w *wire) pass(d direction) bool {
	for {
		w.mu.Lock()
		held := w.held[d]
		w.mu.Unlock()
		if held == nil {
			return true
		}
		select {
		case <-held:
		case <-w.ended:
			return false
		}
	}
}

// hold bytes of these directions back.
func (w *wire) hold(directions ...direction) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range directions {
		if w.held[d] == nil {
			w.held[d] = make(chan struct{})
		}
	}
}

// heal lets all pass, what was held first.
func (w *wire) heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for d, held := range w.held {
		if held != nil {
			close(held)
			w.held[d] = nil
		}
	}
}

func (w *wire) keep(conns ...net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range conns {
		w.conns[c] = true
	}
}

func (w *wire) forget(conns ...net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range conns {
		delete(w.conns, c)
	}
}

// Close the wire, and all that goes over it.
func (w *wire) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.ended)
	for c := range w.conns {
		_ = c.Close()
	}
	return w.Listener.Close()
}
