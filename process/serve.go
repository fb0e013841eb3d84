package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/gorilla/mux"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/klog/v2"
)

// shutdownTimeout bounds how long requests under way may take at the end.
const shutdownTimeout = 2 * time.Second

// Listen at the address for metrics and health; nil, without an error, if it is
// empty: then they are served nowhere.
func Listen(address string) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening for metrics and health: %w", err)
	}
	return listener, nil
}

// Serve answers requests for metrics and health until ctx ends.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    1 << 16,
	}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		if err := server.Shutdown(ending); err != nil {
			klog.FromContext(ctx).Error(err, "Requests broken off", "address", listener.Addr().String())
		}
	})
	klog.FromContext(ctx).Info("Serving metrics and health", "address", listener.Addr().String())
	err := server.Serve(listener)
	if !stop() {
		<-stopped
	}
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving metrics and health: %w", err)
	}
	return nil
}

// Serve starts a part that serves metrics and health at the address; none if it is
// empty.
func (p *Parts) Serve(address string, handler http.Handler) error {
	listener, err := Listen(address)
	if listener != nil {
		p.Run(func(ctx context.Context) error { return Serve(ctx, listener, handler) })
	}
	return err
}

// Health of a process. A function that is nil has nothing to say against it.
type Health struct {
	// Healthy is a process that need not be restarted.
	Healthy func(*http.Request) error
	// Ready is one that can be used; a standby is ready.
	Ready func() error
	// Checks by name, for /live and /ready; nil: none.
	Checks *Checks
}

// MetricsHandler is /metrics.
func MetricsHandler(metrics prometheus.Gatherer) http.Handler {
	router := mux.NewRouter()
	router.Methods(http.MethodGet, http.MethodHead).Path("/metrics").Handler(promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	return router
}

// Endpoints are /metrics, unless metrics is nil, /healthz and /readyz, and /live and
// /ready, which ask the named checks too.
func Endpoints(metrics prometheus.Gatherer, h Health) http.Handler {
	router := mux.NewRouter()
	if metrics != nil {
		router.Path("/metrics").Handler(MetricsHandler(metrics))
	}
	router.Methods(http.MethodGet, http.MethodHead).Path("/healthz").HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.Healthy != nil {
			if err := h.Healthy(r); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
		}
		ok(w)
	})
	router.Methods(http.MethodGet, http.MethodHead).Path("/readyz").HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if h.Ready != nil {
			if err := h.Ready(); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
		}
		ok(w)
	})
	router.Methods(http.MethodGet, http.MethodHead).Path("/live").HandlerFunc(checksHandler(h.liveness, noChecks))
	router.Methods(http.MethodGet, http.MethodHead).Path("/ready").HandlerFunc(checksHandler(h.readiness, h.listed))
	return router
}

func ok(w http.ResponseWriter) {
	_, _ = w.Write([]byte("ok\n")) // whoever asked has gone if this fails
}

// NewMetrics registers what every process tells of itself: Go's runtime, the
// operating system's process, and which build it is.
func NewMetrics(registerer prometheus.Registerer, version string) {
	registerer.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	promauto.With(registerer).NewGaugeVec(prometheus.GaugeOpts{Name: "tapp_build_info",
		Help: "Always 1; the label says which version runs."}, []string{"version"}).WithLabelValues(version).Set(1)
}
