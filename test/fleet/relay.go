//go:build cluster

package fleet

import (
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// relay is an API server's other address. It knows which requests are writes, and can have
// a program die just before one reaches the server, or before its answer reaches the program.
type relay struct {
	*httptest.Server

	mu   sync.Mutex
	seen []string
	trap *trap
}

// trap has a program die at a write.
type trap struct {
	write  string // as seen has it
	after  bool   // the write is done
	kill   func()
	sprung bool
}

// newRelay leads to an API server.
func newRelay(server *rest.Config) (*relay, error) {
	to, err := url.Parse(server.Host)
	if err != nil {
		return nil, fmt.Errorf("the address of the API server: %w", err)
	}
	transport, err := rest.TransportFor(&rest.Config{Host: server.Host, TLSClientConfig: rest.TLSClientConfig{CAData: server.CAData}})
	if err != nil {
		return nil, fmt.Errorf("a transport to the API server: %w", err)
	}
	r := &relay{}
	proxy := &httputil.ReverseProxy{
		Rewrite:        func(p *httputil.ProxyRequest) { p.SetURL(to) },
		Transport:      transport,
		FlushInterval:  -1, // watches
		ModifyResponse: func(response *http.Response) error { return r.pass(response.Request, true) },
		ErrorHandler:   func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if r.pass(request, false) != nil {
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, request)
	}))
	r.EnableHTTP2 = true
	r.StartTLS()
	return r, nil
}

// ca is what its certificate is checked by.
func (r *relay) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw})
}

var errDead = errors.New("nobody is there any more")

// pass a request on, or its answer back; an error: the program is dead.
func (r *relay) pass(request *http.Request, answered bool) error {
	write := writeOf(request)
	if write == "" {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !answered && !slices.Contains(r.seen, write) {
		r.seen = append(r.seen, write)
	}
	if t := r.trap; t != nil && !t.sprung && t.write == write && t.after == answered {
		t.sprung = true
		t.kill()
		return errDead
	}
	return nil
}

// set a trap, or none, and forget which writes there were.
func (r *relay) set(t *trap) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trap, r.seen = t, nil
}

// sprung says whether the trap was hit.
func (r *relay) sprung() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.trap != nil && r.trap.sprung
}

// writes that there were.
func (r *relay) writes() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.seen)
}

// writeOf is the kind of a write, as "PATCH appsets/status"; empty: it is none, or one that
// decides nothing.
func writeOf(r *http.Request) string {
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return ""
	}
	_, path, ok := strings.Cut(r.URL.Path, "/namespaces/")
	parts := strings.Split(path, "/") // namespace, resource, name, subresource
	if !ok || len(parts) < 2 || parts[1] == "events" || parts[1] == "leases" {
		return ""
	}
	write := r.Method + " " + parts[1]
	if len(parts) > 3 {
		write += "/" + parts[3]
	}
	return write
}
