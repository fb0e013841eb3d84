package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/mux"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"tkestack.io/tapp/api/access"
	"tkestack.io/tapp/api/answer"
	"tkestack.io/tapp/api/live"
)

// Options of an API. Those that do not say otherwise are required.
type Options struct {
	// Config reaches the API server.
	Config *rest.Config
	// Authenticator and Authorizer decide about each request.
	Authenticator access.Authenticator
	Authorizer    access.Authorizer
	// Namespace whose objects alone are shown; empty: those of all.
	Namespace string
	// ControllerNamespace is where the controller publishes its policy; empty: its defaults
	// are assumed.
	ControllerNamespace string
	// Members are the clusters of the fleet; nil: none are read. Their Run is the caller's.
	Members *Members
	// Page answers what is not below /api; nil: nothing does. It asks nobody who they are.
	Page http.Handler
	// Registry takes the metrics; nil: nobody does.
	Registry prometheus.Registerer
	// Limits of callers and streams; those that are 0 have their defaults.
	Limits Limits
}

// Limits of what callers may use.
type Limits struct {
	// Streams at a time, of all callers and of one.
	Streams, StreamsPerUser int
	// RequestsPerSecond of one caller. Twice as many of them may wait for their answers.
	RequestsPerSecond int
	// Requests of all callers that may wait for their answers, if that is more than four times
	// RequestsPerSecond; streams that have begun do not.
	Requests int
	// FailuresPerMinute is how many wrong tokens an address may send before it has to wait.
	FailuresPerMinute int
	// Recheck is how often the rights of a stream's caller are checked again.
	Recheck time.Duration
	// Keep is how long granted authentications and authorizations are remembered. Refusals
	// are remembered for 10 seconds at most.
	Keep time.Duration
	// Write is how long a reader may take for one piece that is sent to it. Request is how
	// long an answer may take that is not a stream.
	Write, Request time.Duration
	// Pulse is how often the API server is asked whether it answers while something is watched,
	// and how long it may take.
	Pulse time.Duration
	// Linger is how long a watch goes on after its last reader has gone.
	Linger time.Duration
}

// SetDefaults sets those that are 0.
func (l *Limits) SetDefaults() {
	set := func(field *int, value int) {
		if *field == 0 {
			*field = value
		}
	}
	last := func(field *time.Duration, value time.Duration) {
		if *field == 0 {
			*field = value
		}
	}
	set(&l.Streams, 1000)
	set(&l.StreamsPerUser, 250)
	set(&l.RequestsPerSecond, 100)
	set(&l.Requests, 400)
	set(&l.FailuresPerMinute, 30)
	last(&l.Recheck, time.Minute)
	last(&l.Keep, time.Minute)
	last(&l.Write, 10*time.Second)
	last(&l.Request, 30*time.Second)
	last(&l.Pulse, 5*time.Second)
	last(&l.Linger, 15*time.Second)
}

// API answers requests. Close ends what it watches.
type API struct {
	Options
	clients    *clients
	topics     *live.Topics
	streams    *access.Slots
	turns      *access.Slots // of requests, until they are answered or a stream begins
	limits     *access.Rates
	policies   policies
	podReads   *podReads
	metrics    *metrics
	handler    http.Handler
	EndStreams context.CancelFunc
	closing    sync.Once
}

// New makes an API. It asks the API server nothing before a request. The context has the logger,
// and when it ends, so do all streams.
func New(ctx context.Context, o Options) (*API, error) {
	if o.Config == nil || o.Authenticator == nil || o.Authorizer == nil {
		return nil, errors.New("the API needs a configuration, an authenticator and an authorizer")
	}
	o.Limits.SetDefaults()
	a := &API{Options: o, podReads: newPodReads()}
	var err error
	if a.clients, err = connect(o.Config); err != nil {
		return nil, err
	}
	ctx, a.EndStreams = context.WithCancel(ctx)
	a.streams = access.NewSlots(o.Limits.Streams, o.Limits.StreamsPerUser, "streams")
	a.turns = access.NewSlots(max(o.Limits.Requests, 4*o.Limits.RequestsPerSecond), 2*o.Limits.RequestsPerSecond, "requests")
	a.limits = access.NewRates(o.Limits.RequestsPerSecond, o.Limits.FailuresPerMinute)
	a.metrics = newMetrics(o.Registry, a)
	a.topics = live.New(ctx, live.Options{Source: a.source, Ask: a.clients.version, Pulse: o.Limits.Pulse, Linger: o.Limits.Linger, Panicked: a.metrics.panics.Inc})
	a.handler = a.router()
	return a, nil
}

// ServeHTTP answers a request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.handler.ServeHTTP(w, r) }

// Close ends all streams and watches, and returns when they have ended.
func (a *API) Close() {
	a.closing.Do(func() {
		a.EndStreams()
		a.topics.Close()
	})
}

// router has the routes of the table, and the page.
func (a *API) router() *mux.Router {
	router := mux.NewRouter()
	for _, route := range Routes() {
		methods := []string{route.Method}
		if route.Method == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
		router.Path(route.Path).Methods(methods...).Handler(a.serve(route)).Name(route.ID)
	}
	refuse := func(code func(r *http.Request) error) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer.Error(w, r, code(r)) })
	}
	router.MethodNotAllowedHandler = refuse(answer.WrongMethod)
	router.NotFoundHandler = refuse(answer.NoSuchRoute)
	if a.Page != nil {
		router.MatcherFunc(func(r *http.Request, _ *mux.RouteMatch) bool { return !strings.HasPrefix(r.URL.Path, "/api") }).Handler(a.Page)
	}
	return router
}
