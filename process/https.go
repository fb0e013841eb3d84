package process

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"
)

const (
	// stopServing bounds how long requests under way may take at the end.
	stopServing = 10 * time.Second
	// headerTimeout and maxHeader bound what a caller may send before anything is known of him.
	headerTimeout = 10 * time.Second
	maxHeader     = 1 << 16
)

// ServeTLS answers requests until ctx ends, and returns nil when it has. ending is called at the
// end, before requests under way are waited for. The server has its handler, TLSConfig with the
// certificates, and the timeouts of what it serves; the rest is set here.
func ServeTLS(ctx context.Context, srv *http.Server, listener net.Listener, ending func()) error {
	logger := klog.FromContext(ctx)
	srv.ReadHeaderTimeout, srv.MaxHeaderBytes = headerTimeout, maxHeader
	srv.BaseContext = func(net.Listener) context.Context { return context.WithoutCancel(ctx) }
	srv.ErrorLog = log.New(logLines{logger}, "", 0)
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		ending()
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopServing)
		defer cancel()
		if err := srv.Shutdown(limited); err != nil {
			logger.Error(err, "Requests broken off")
		}
	})
	err := srv.ServeTLS(listener, "", "")
	if !stop() {
		<-stopped
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Readiness of a server by TLS: it has certificates to serve with, and is not ending.
type Readiness struct{ ending atomic.Bool }

// End is called when the server begins to end.
func (r *Readiness) End() { r.ending.Store(true) }

// Ready is nil if requests can be answered.
func (r *Readiness) Ready(certificates interface{ Ready() bool }) error {
	switch {
	case r.ending.Load():
		return errors.New("this replica is ending")
	case !certificates.Ready():
		return errors.New("there is no certificate yet")
	}
	return nil
}

// logLines is where the HTTP server writes its complaints: mostly handshakes that
// clients broke off.
type logLines struct{ klog.Logger }

func (l logLines) Write(line []byte) (int, error) {
	l.V(2).Info("HTTP server", "said", strings.TrimSpace(string(line)))
	return len(line), nil
}
