package apiserver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Request as the API server got it.
type Request struct {
	Verb          string // get list watch create update patch delete
	Resource, Sub string
	Namespace     string // empty: none, or all
	Name          string // empty: the collection
	Path          string // of what is no resource
	Query         url.Values
	Body          []byte
	Media, Accept string
	Context       context.Context //nolint:containedctx // the request's, as http.Request has it
}

// Answer to a request.
type Answer struct {
	Status int
	Media  string
	Body   []byte
	Header http.Header
	Err    error

	stream *stream
}

// IsWrite says whether the request may change anything.
func (r *Request) IsWrite() bool { return r.Verb != "get" && r.Verb != "list" && r.Verb != "watch" }

// IsDry says whether the request only asks what a write would come to.
func (r *Request) IsDry() bool { return r.Query.Get("dryRun") == metav1.DryRunAll }

// Key of the object that the request is about.
func (r *Request) Key() string { return KeyOf(r.Namespace, r.Name) }

// About sorts requests.
func (r *Request) About() string {
	return strings.Join([]string{r.Verb, r.Resource, r.Sub, r.Namespace, r.Name, r.Path, string(r.Body)}, " ")
}

func (r *Request) String() string {
	out := r.Verb + " " + r.Resource + r.Path
	if r.Name != "" {
		out += "/" + r.Name
	}
	if r.Sub != "" {
		out += "/" + r.Sub
	}
	if r.IsDry() {
		out = "dry run: " + out
	}
	if r.Verb == "patch" {
		out += " " + string(r.Body)
	}
	return out
}

// Read turns an HTTP request into one of ours.
func Read(h *http.Request) (*Request, error) {
	r := &Request{Query: h.URL.Query(), Media: h.Header.Get("Content-Type"), Accept: h.Header.Get("Accept"), Context: h.Context()}
	if h.Body != nil {
		b, err := io.ReadAll(h.Body)
		if err != nil {
			return nil, err
		}
		_ = h.Body.Close()
		r.Body = b
	}
	parts := strings.Split(strings.Trim(h.URL.Path, "/"), "/")
	switch {
	case len(parts) >= 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) >= 3 && parts[0] == "apis":
		parts = parts[3:]
	case len(parts) == 1:
		r.Path = h.URL.Path
		parts = nil
	default:
		return nil, fmt.Errorf("no such path: %s", h.URL.Path)
	}
	if len(parts) >= 3 && parts[0] == "namespaces" {
		r.Namespace, parts = parts[1], parts[2:]
	}
	for i, field := range []*string{&r.Resource, &r.Name, &r.Sub} {
		if i < len(parts) {
			*field = parts[i]
		}
	}
	r.Verb = verbOf(h.Method, r)
	return r, nil
}

func verbOf(method string, r *Request) string {
	switch method {
	case http.MethodGet:
		switch {
		case r.Query.Get("watch") == "true":
			return "watch"
		case r.Name == "" && r.Resource != "":
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

// Refusal is the answer that tells of an error.
func Refusal(err error) *Answer {
	status, ok := err.(apierrors.APIStatus)
	if !ok {
		status = apierrors.NewInternalError(err)
	}
	out := status.Status()
	out.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	body, encodeErr := encode(&out, metav1.SchemeGroupVersion.WithKind("Status"), inJSON)
	if encodeErr != nil {
		return &Answer{Err: encodeErr}
	}
	return &Answer{Status: int(out.Code), Media: inJSON, Body: body}
}

// Response is the answer in HTTP.
func (a *Answer) Response(r *http.Request) (*http.Response, error) {
	if a.Err != nil {
		return nil, a.Err
	}
	body := io.NopCloser(bytes.NewReader(a.Body))
	if a.stream != nil {
		body = a.stream
	}
	header := a.Header
	if header == nil {
		header = http.Header{}
	}
	header.Set("Content-Type", a.Media)
	return &http.Response{StatusCode: a.Status, Status: http.StatusText(a.Status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: body, ContentLength: -1, Request: r}, nil
}
