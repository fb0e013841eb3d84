package webhook

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/gorilla/mux"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/certs"
	"tkestack.io/tapp/process"
	"tkestack.io/tapp/webhook/review"
)

// server answers reviews.
type server struct {
	certificates Certificates
	clients      certs.Clients
	// delay at the end, see Config.ShutdownDelay.
	delay   time.Duration
	handler http.Handler
	// load of all reviews under way.
	load *review.Load
	// webhooks of all kinds.
	webhooks  []Webhook
	readiness process.Readiness
}

func (s *server) routes() http.Handler {
	// The path comes first: a route that matches by its method alone would turn a 405
	// of another one into a 404.
	router := mux.NewRouter()
	for _, w := range s.webhooks {
		router.Path(w.Path).Methods(http.MethodPost).Handler(s.load.Bound(w.Handler))
	}
	router.Path("/healthz").Methods(http.MethodGet, http.MethodHead).HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { ok(w) })
	router.Path("/readyz").Methods(http.MethodGet, http.MethodHead).HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := s.readiness.Ready(s.certificates); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		ok(w)
	})
	return router
}

func ok(w http.ResponseWriter) {
	_, _ = w.Write([]byte("ok\n")) // whoever asked has gone if this fails
}

// serve answers requests until ctx ends, and for a while after.
func (s *server) serve(ctx context.Context, listener net.Listener) error {
	srv := &http.Server{
		Handler:      s.handler,
		TLSConfig:    s.clients.Require(certs.TLSConfig(s.certificates.GetCertificate)),
		ReadTimeout:  review.MaxTimeout,
		WriteTimeout: review.MaxTimeout + 5*time.Second,
		IdleTimeout:  3 * time.Minute, // the API server keeps its connection
	}
	klog.FromContext(ctx).Info("Serving admission", "address", listener.Addr().String())
	if err := process.ServeTLS(ctx, srv, listener, func() {
		s.readiness.End()
		<-time.NewTimer(s.delay).C
	}); err != nil {
		return fmt.Errorf("serving admission: %w", err)
	}
	return nil
}
