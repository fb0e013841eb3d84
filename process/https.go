package process

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"strings"
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

// logLines is where the HTTP server writes its complaints: mostly handshakes that
// clients broke off.
type logLines struct{ klog.Logger }

func (l logLines) Write(line []byte) (int, error) {
	l.V(2).Info("HTTP server", "said", strings.TrimSpace(string(line)))
	return len(line), nil
}
