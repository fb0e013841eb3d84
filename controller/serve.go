package controller

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/klog/v2"
)

// stopServing bounds how long requests under way may take at the end.
const stopServing = 2 * time.Second

// serve answers /metrics, /healthz and /readyz until ctx ends.
func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    1 << 16,
	}
	stop := context.AfterFunc(ctx, func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopServing)
		defer cancel()
		if err := server.Shutdown(ending); err != nil {
			klog.FromContext(ctx).Error(err, "Requests broken off", "address", listener.Addr().String())
		}
	})
	defer stop()
	klog.FromContext(ctx).Info("Serving metrics and health", "address", listener.Addr().String())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving metrics and health: %w", err)
	}
	return nil
}

// endpoints are /metrics, /healthz and /readyz. Healthy is a process that need
// not be restarted; ready is one whose caches are filled, also a standby.
func endpoints(metrics prometheus.Gatherer, health func(*http.Request) error, ready func() bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		if err := health(r); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		ok(w)
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !ready() {
			http.Error(w, "the caches are not filled yet", http.StatusServiceUnavailable)
			return
		}
		ok(w)
	})
	return mux
}

func ok(w http.ResponseWriter) {
	_, _ = w.Write([]byte("ok\n")) // whoever asked has gone if this fails
}
