package fleet

import (
	"context"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// Network is how members are reached.
type Network interface {
	// Dial makes a connection to an address of a member.
	Dial(ctx context.Context, network, address string) (net.Conn, error)
	// Transport carries requests, with the credentials of the configuration, over the
	// connections that its Dial makes.
	Transport(config *rest.Config) (http.RoundTripper, error)
}

// wires are the real network.
type wires struct{ net.Dialer }

func newWires(allowLocal bool) *wires {
	return &wires{net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second, ControlContext: refuseLocal(allowLocal)}}
}

// Dial implements Network.
func (w *wires) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return w.DialContext(ctx, network, address)
}

// Transport implements Network.
func (w *wires) Transport(config *rest.Config) (http.RoundTripper, error) {
	return rest.TransportFor(config)
}
