package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/mux"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/api/access"
	"tkestack.io/tapp/api/answer"
	"tkestack.io/tapp/crd/workload/v1beta1"
)

// request is one that is being answered.
type request struct {
	w      http.ResponseWriter
	r      *http.Request
	route  Route
	caller *access.Caller
	// turn that the request has, until it is called.
	turn func()
	// Of the path.
	cluster, namespace, name string
}

func (q *request) ctx() context.Context { return q.r.Context() }

// serve makes the handler of a route: it authenticates the caller, keeps limits, answers, and
// logs the request.
func (a *API) serve(route Route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		counted := &answer.Counting{ResponseWriter: w}
		q := &request{w: counted, r: r, route: route, cluster: mux.Vars(r)["cluster"], namespace: mux.Vars(r)["namespace"], name: mux.Vars(r)["name"]}
		answer.Harden(w.Header())
		if err := a.answer(q); err != nil {
			if counted.Code == 0 {
				answer.Error(counted, r, err)
			}
		}
		a.metrics.observe(route.ID, counted.Code, time.Since(began))
		user := ""
		if q.caller != nil {
			user = q.caller.Name
		}
		klog.FromContext(a.topics.Context()).V(2).Info("Request", "method", r.Method, "path", r.URL.Path, "user", user, "from", address(r),
			"code", counted.Code, "bytes", counted.Bytes, "took", time.Since(began).Round(time.Microsecond))
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

// admit authenticates the caller and checks the limits. It takes a turn before that: the API server
// is asked who the caller is, and requests would pile up while it hangs.
func (a *API) admit(q *request) error {
	from := address(q.r)
	if !a.limits.MayFail(from) {
		return apierrors.NewTooManyRequests("too many wrong tokens came from this address; wait a while", answer.RetrySeconds)
	}
	end, err := a.turns.Begin(nil)
	if err != nil {
		return err
	}
	caller, err := a.Authenticator.Authenticate(q.ctx(), q.r)
	end()
	if err != nil {
		if apierrors.IsUnauthorized(err) {
			a.limits.Failed(from)
		}
		return err
	}
	q.caller = caller
	if !a.limits.Allow(caller.Key) {
		return apierrors.NewTooManyRequests(fmt.Sprintf("%s sends more than %d requests a second", caller.Name, a.Limits.RequestsPerSecond), answer.RetrySeconds)
	}
	q.turn, err = a.turns.Begin(caller)
	return err
}

// beginStream gives the turn of its request back. The function that is returned ends the stream.
func (a *API) beginStream(q *request) (func(), error) {
	end, err := a.streams.Begin(q.caller)
	if err == nil {
		q.turn()
	}
	return end, err
}

// may returns an error unless the caller may do this.
func (a *API) may(q *request, what access.Access) error {
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
		return apierrors.NewBadRequest(fmt.Sprintf("the %s %q is not one that Kubernetes has: %s", what, answer.Shorten(value), problems[0]))
	}
	return nil
}

// write a document, or 304 if the caller has it already.
func (q *request) write(tag string, body []byte) error { return answer.Document(q.w, q.r, tag, body) }

// writeValue writes a value that no topic computes; its ETag is its hash.
func (q *request) writeValue(value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return q.write(answer.TagOf(string(body)), body)
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
		return 0, apierrors.NewBadRequest(fmt.Sprintf("the parameter %s is %q; give a number from %d to %d", name, answer.Shorten(text), least, most))
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
			return apierrors.NewBadRequest(fmt.Sprintf("the route has no parameter %q; %s", answer.Shorten(name), text))
		}
	}
	return nil
}

// address of the other side, without its port. Headers of proxies are not believed.
func address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
