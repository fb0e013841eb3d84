package api

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/mux"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// retrySeconds is when to come back after 429 and 503.
const retrySeconds = 2

// request is one that is being answered.
type request struct {
	w      http.ResponseWriter
	r      *http.Request
	route  Route
	caller *Caller
	// turn that the request has, until it is called.
	turn func()
	// Of the path.
	cluster, namespace, name string
}

func (q *request) ctx() context.Context { return q.r.Context() }

// serve makes the handler of a route: who asks, what of it is too much, and what is told
// of it afterwards.
func (a *API) serve(route Route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		counted := &counting{ResponseWriter: w}
		q := &request{w: counted, r: r, route: route, cluster: mux.Vars(r)["cluster"], namespace: mux.Vars(r)["namespace"], name: mux.Vars(r)["name"]}
		harden(w.Header())
		if err := a.answer(q); err != nil {
			if counted.code == 0 {
				writeError(counted, r, err)
			}
		}
		a.metrics.observe(route.ID, counted.code, time.Since(began))
		user := ""
		if q.caller != nil {
			user = q.caller.Name
		}
		klog.FromContext(a.feeds.ctx).V(2).Info("Request", "method", r.Method, "path", r.URL.Path, "user", user, "from", address(r),
			"code", counted.code, "bytes", counted.bytes, "took", time.Since(began).Round(time.Microsecond))
	})
}

func (a *API) answer(q *request) error {
	if !q.route.Open {
		if err := a.admit(q); err != nil {
			return err
		}
		defer q.turn()
	}
	if err := q.checkPath(); err != nil {
		return err
	}
	stream := q.flag("watch") && q.route.Stream || q.flag("follow")
	if !stream {
		ctx, cancel := context.WithTimeout(q.ctx(), a.Limits.Request)
		defer cancel()
		q.r = q.r.WithContext(ctx)
		_ = http.NewResponseController(q.w).SetWriteDeadline(time.Now().Add(a.Limits.Request + a.Limits.Write)) // a recorder has none
	}
	return q.route.handle(a, q)
}

// admit finds out who asks, and whether he does so too often. Callers whom nobody knows yet have
// turns, too: they would pile up while the API server hangs, which is asked who they are.
func (a *API) admit(q *request) error {
	from := address(q.r)
	if !a.limits.mayFail(from) {
		return apierrors.NewTooManyRequests("too many wrong tokens came from this address; wait a while", retrySeconds)
	}
	end, err := a.turns.begin(nil)
	if err != nil {
		return err
	}
	caller, err := a.Authenticator.Authenticate(q.ctx(), q.r)
	end()
	if err != nil {
		if apierrors.IsUnauthorized(err) {
			a.limits.failed(from)
		}
		return err
	}
	q.caller = caller
	if !a.limits.allow(caller.key) {
		return apierrors.NewTooManyRequests(fmt.Sprintf("%s sends more than %d requests a second", caller.Name, a.Limits.RequestsPerSecond), retrySeconds)
	}
	q.turn, err = a.turns.begin(caller)
	return err
}

// beginStream gives the turn of its request back. The function that is returned ends the stream.
func (a *API) beginStream(q *request) (func(), error) {
	end, err := a.streams.begin(q.caller)
	if err == nil {
		q.turn()
	}
	return end, err
}

// may returns an error unless the caller may do this.
func (a *API) may(q *request, what Access) error {
	allowed, why, err := a.Authorizer.Authorize(q.ctx(), q.caller, what)
	if err != nil || allowed {
		return err
	}
	resource := what.Resource
	if what.Subresource != "" {
		resource += "/" + what.Subresource
	}
	text := fmt.Sprintf("%s may not %s %s", q.caller.Name, what.Verb, resource)
	if what.Namespace != "" {
		text += " in namespace " + what.Namespace
	} else {
		text += " in all namespaces"
	}
	if why != "" {
		text += ": " + why
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: what.Group, Resource: resource}, what.Name, errors.New(text))
}

// checkPath refuses names that no object has.
func (q *request) checkPath() error {
	for name, value := range mux.Vars(q.r) {
		if name == "cluster" {
			value = v1beta1.FoldClusterName(value)
		}
		if err := checkName(name, value); err != nil {
			return err
		}
	}
	return nil
}

// checkName refuses a name that no object has; what is that of a variable.
func checkName(what, value string) error {
	check := validation.IsDNS1123Subdomain
	if what == "namespace" {
		check = validation.IsDNS1123Label
	}
	if problems := check(value); len(problems) > 0 {
		return apierrors.NewBadRequest(fmt.Sprintf("the %s %q is not one that Kubernetes has: %s", what, shorten(value), problems[0]))
	}
	return nil
}

func shorten(text string) string {
	const most = 64
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// flag of the query.
func (q *request) flag(name string) bool {
	value := q.r.URL.Query().Get(name)
	return value == "1" || value == "true"
}

// number of the query, within bounds.
func (q *request) number(name string, unset, least, most int) (int, error) {
	text := q.r.URL.Query().Get(name)
	if text == "" {
		return unset, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("the parameter %s is %q; give a number from %d to %d", name, shorten(text), least, most))
	}
	return n, nil
}

// checkQuery refuses parameters that the route does not have: a misspelt filter would show
// everything.
func (q *request) checkQuery() error {
	for name := range q.r.URL.Query() {
		if !slices.ContainsFunc(q.route.Query, func(p Parameter) bool { return p.Name == name }) {
			var known []string
			for _, p := range q.route.Query {
				known = append(known, p.Name)
			}
			text := "it has none"
			if len(known) > 0 {
				text = "it has " + strings.Join(known, ", ")
			}
			return apierrors.NewBadRequest(fmt.Sprintf("the route has no parameter %q; %s", shorten(name), text))
		}
	}
	return nil
}

// write a document. Who has it already gets 304.
func (q *request) write(tag string, body []byte) error {
	h := q.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "private, no-cache")
	h.Set("Vary", "Authorization, Accept-Encoding")
	if tag != "" {
		tag = `"` + tag + `"`
		h.Set("ETag", tag)
		for _, have := range strings.Split(q.r.Header.Get("If-None-Match"), ",") {
			if have = strings.TrimPrefix(strings.TrimSpace(have), "W/"); have == tag || have == "*" {
				q.w.WriteHeader(http.StatusNotModified)
				return nil
			}
		}
	}
	const worthIt = 16 << 10
	if len(body) > worthIt && acceptsGzip(q.r) && q.r.Method != http.MethodHead {
		h.Set("Content-Encoding", "gzip")
		z, err := gzip.NewWriterLevel(q.w, gzip.BestSpeed)
		if err != nil {
			return err
		}
		_, _ = z.Write(body) // whoever asked has gone if this fails
		return z.Close()
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	q.w.WriteHeader(http.StatusOK)
	if q.r.Method != http.MethodHead {
		_, _ = q.w.Write(body)
	}
	return nil
}

func acceptsGzip(r *http.Request) bool {
	for _, part := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		name, q, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.TrimSpace(name) == "gzip" {
			return strings.TrimSpace(q) != "q=0"
		}
	}
	return false
}

// writeValue is write for what has no topic.
func (q *request) writeValue(value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return q.write(tagOf(string(body)), body)
}

// tagOf parts of an answer.
func tagOf(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// writeError answers with a Status.
func writeError(w http.ResponseWriter, r *http.Request, err error) {
	status := statusOf(err)
	harden(w.Header())
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Del("ETag")
	if status.Code == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	if d := status.Details; d != nil && d.RetryAfterSeconds > 0 {
		h.Set("Retry-After", strconv.Itoa(int(d.RetryAfterSeconds)))
	}
	body, _ := json.Marshal(status) // it marshals
	w.WriteHeader(int(status.Code))
	if r.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}

// statusOf an error. What is no answer of an API server is told in the log, and not to the
// caller.
func statusOf(err error) metav1.Status {
	known := apierrors.APIStatus(nil)
	if !errors.As(err, &known) {
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			known = apierrors.NewServiceUnavailable("the API server does not answer in time")
		default:
			klog.Background().Error(err, "A request failed")
			known = apierrors.NewInternalError(errors.New("see the log of tapp api"))
		}
	}
	status := known.Status()
	status.APIVersion, status.Kind = "v1", "Status"
	if status.Code == 0 {
		status.Code = http.StatusInternalServerError
	}
	if status.Code == http.StatusServiceUnavailable && status.Details == nil {
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: retrySeconds}
	}
	return status
}

func noSuchRoute(r *http.Request) error {
	return notFound("there is no route %s; /api/openapi.json lists them", shorten(r.URL.Path))
}

func notFound(format string, args ...any) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: fmt.Sprintf(format, args...)}}
}

func wrongMethod(r *http.Request) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusMethodNotAllowed, Reason: metav1.StatusReasonMethodNotAllowed,
		Message: fmt.Sprintf("%s does not take %s: this API only reads", shorten(r.URL.Path), shorten(r.Method))}}
}

func harden(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
}

// address of the other side, without its port. Headers of proxies are not believed.
func address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// wordsOf an error of a request, without the URL that it was sent to.
func wordsOf(err error) string {
	var sent *url.Error
	for errors.As(err, &sent) {
		if sent.Timeout() {
			return "it does not answer in time"
		}
		err = sent.Err
	}
	var network *net.OpError
	if errors.As(err, &network) {
		return network.Op + ": " + network.Err.Error()
	}
	return shorten(err.Error())
}

// counting remembers what was answered.
type counting struct {
	http.ResponseWriter
	code  int
	bytes int64
}

func (c *counting) WriteHeader(code int) {
	if c.code == 0 {
		c.code = code
	}
	c.ResponseWriter.WriteHeader(code)
}

func (c *counting) Write(b []byte) (int, error) {
	if c.code == 0 {
		c.code = http.StatusOK
	}
	n, err := c.ResponseWriter.Write(b)
	c.bytes += int64(n)
	return n, err
}

// Unwrap is for http.ResponseController.
func (c *counting) Unwrap() http.ResponseWriter { return c.ResponseWriter }
