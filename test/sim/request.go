package sim

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// request of the controller, as the API server got it.
type request struct {
	replica       *replica
	verb          string // get list watch create update patch delete
	resource, sub string
	name          string // empty: the collection
	query         url.Values
	body          []byte
	media, accept string
	issued        time.Time
	http          *http.Request
	answer        chan *answer
	abandoned     bool // nobody waits for the answer
	// belief that it was made on; nil: it is of no TApp.
	belief *belief
	// joined are those that a list may be a part of.
	joined  []*belief
	settled bool // the belief knows that it is over
}

// answer to a request.
type answer struct {
	status int
	media  string
	body   []byte
	stream *stream
	header http.Header
	err    error
}

// isWrite says whether the request may change anything.
func (r *request) isWrite() bool { return r.verb != "get" && r.verb != "list" && r.verb != "watch" }

// key sorts requests by what they are about.
func (r *request) key() string {
	return strings.Join([]string{r.replica.name, r.verb, r.resource, r.sub, r.name, string(r.body)}, " ")
}

// lateness is how much later than at its end somebody hears that the time of a request
// is up. Those of one moment end at one moment, too, and what comes of them would be in
// any order.
func (r *request) lateness() time.Duration {
	h := fnv.New32a()
	_, _ = io.WriteString(h, r.key())
	return time.Duration(h.Sum32() % uint32(time.Millisecond))
}

func (r *request) String() string {
	out := r.verb + " " + r.resource
	if r.name != "" {
		out += "/" + r.name
	}
	if r.sub != "" {
		out += "/" + r.sub
	}
	if r.verb == "patch" {
		out += " " + string(r.body)
	}
	return out
}

// read turns an HTTP request into one of ours.
func read(h *http.Request, from *replica, now time.Time) (*request, error) {
	r := &request{replica: from, query: h.URL.Query(), media: h.Header.Get("Content-Type"), accept: h.Header.Get("Accept"),
		issued: now, http: h, answer: make(chan *answer, 1)}
	if h.Body != nil {
		b, err := io.ReadAll(h.Body)
		if err != nil {
			return nil, err
		}
		_ = h.Body.Close()
		r.body = b
	}
	parts := strings.Split(strings.Trim(h.URL.Path, "/"), "/")
	switch {
	case len(parts) >= 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) >= 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return nil, fmt.Errorf("no such path: %s", h.URL.Path)
	}
	if len(parts) >= 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	for i, field := range []*string{&r.resource, &r.name, &r.sub} {
		if i < len(parts) {
			*field = parts[i]
		}
	}
	r.verb = verbOf(h.Method, r)
	return r, nil
}

func verbOf(method string, r *request) string {
	switch method {
	case http.MethodGet:
		switch {
		case r.query.Get("watch") == "true":
			return "watch"
		case r.name == "":
			return "list"
		}
		return "get"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	}
	return strings.ToLower(method)
}

// refusal is the answer that tells of an error.
func refusal(err error) *answer {
	status, ok := err.(apierrors.APIStatus)
	if !ok {
		status = apierrors.NewInternalError(err)
	}
	out := status.Status()
	out.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	body, encodeErr := encode(&out, metav1.SchemeGroupVersion.WithKind("Status"), inJSON)
	if encodeErr != nil {
		return &answer{err: encodeErr}
	}
	return &answer{status: int(out.Code), media: inJSON, body: body}
}

// response is the answer in HTTP.
func (a *answer) response(r *http.Request) (*http.Response, error) {
	if a.err != nil {
		return nil, a.err
	}
	body := io.NopCloser(bytes.NewReader(a.body))
	if a.stream != nil {
		body = a.stream
	}
	header := a.header
	if header == nil {
		header = http.Header{}
	}
	header.Set("Content-Type", a.media)
	return &http.Response{StatusCode: a.status, Status: http.StatusText(a.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: body, ContentLength: -1, Request: r}, nil
}
