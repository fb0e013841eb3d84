package answer

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
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// RetrySeconds is when to come back after 429 and 503.
const RetrySeconds = 2

// Document answers with a document, or with 304 if the caller has it already.
func Document(w http.ResponseWriter, r *http.Request, tag string, body []byte) error {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "private, no-cache")
	h.Set("Vary", "Authorization, Accept-Encoding")
	if tag != "" {
		tag = `"` + tag + `"`
		h.Set("ETag", tag)
		for _, have := range strings.Split(r.Header.Get("If-None-Match"), ",") {
			if have = strings.TrimPrefix(strings.TrimSpace(have), "W/"); have == tag || have == "*" {
				w.WriteHeader(http.StatusNotModified)
				return nil
			}
		}
	}
	const worthIt = 16 << 10
	if len(body) > worthIt && acceptsGzip(r) && r.Method != http.MethodHead {
		h.Set("Content-Encoding", "gzip")
		z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
		if err != nil {
			return err
		}
		_, _ = z.Write(body) // an error means that the caller has gone
		return z.Close()
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body)
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

// TagOf parts of an answer.
func TagOf(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// Error answers with a Status.
func Error(w http.ResponseWriter, r *http.Request, err error) {
	status := StatusOf(err)
	Harden(w.Header())
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

// StatusOf an error. Errors that are no answers of an API server go to the log, and the
// caller gets no details.
func StatusOf(err error) metav1.Status {
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
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: RetrySeconds}
	}
	return status
}

// NoSuchRoute is the error of a path that is none of the routes.
func NoSuchRoute(r *http.Request) error {
	return NotFound("there is no route %s; /api/openapi.json lists them", Shorten(r.URL.Path))
}

// NotFound is an error 404 with this message.
func NotFound(format string, args ...any) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: fmt.Sprintf(format, args...)}}
}

// WrongMethod is the error of a method that a route does not take.
func WrongMethod(r *http.Request) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusMethodNotAllowed, Reason: metav1.StatusReasonMethodNotAllowed,
		Message: fmt.Sprintf("%s does not take %s: this API only reads", Shorten(r.URL.Path), Shorten(r.Method))}}
}

// Harden keeps browsers from guessing types and from framing an answer.
func Harden(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
}

// Words an error of a request, without the URL that it was sent to.
func Words(err error) string {
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
	return Shorten(err.Error())
}

// Counting remembers the code of the answer.
type Counting struct {
	http.ResponseWriter
	Code  int
	Bytes int64
}

// WriteHeader remembers the first code.
func (c *Counting) WriteHeader(code int) {
	if c.Code == 0 {
		c.Code = code
	}
	c.ResponseWriter.WriteHeader(code)
}

// Write counts bytes.
func (c *Counting) Write(b []byte) (int, error) {
	if c.Code == 0 {
		c.Code = http.StatusOK
	}
	n, err := c.ResponseWriter.Write(b)
	c.Bytes += int64(n)
	return n, err
}

// Unwrap is for http.ResponseController.
func (c *Counting) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// Shorten what callers and API servers say, in bytes.
func Shorten(text string) string {
	const most = 64
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
