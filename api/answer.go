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
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// retrySeconds is when to come back after 429 and 503.
const retrySeconds = 2

// writeDocument answers with a document, or with 304 if the caller has it already.
func writeDocument(w http.ResponseWriter, r *http.Request, tag string, body []byte) error {
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

// statusOf an error. Errors that are no answers of an API server go to the log, and the
// caller gets no details.
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

// counting remembers the code of the answer.
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

// shorten what callers and API servers say, in bytes.
func shorten(text string) string {
	const most = 64
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
