// Package review answers AdmissionReviews over HTTP: it bounds and decodes the
// request, gives the answer its deadline, contains panics, and counts verdicts. It
// knows no kind: a Judge says what the answer is.
package review

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// The API server waits for 1 to 30 s, and says in the request how long.
const (
	defaultTimeout = 10 * time.Second
	MaxTimeout     = 30 * time.Second
)

// Judge answers the request of a review. An error denies it as a bad request.
type Judge[T any] func(context.Context, *Request[T]) (Answer, error)

// Decoder reads the body of a review: Decode, or what does the same.
type Decoder[T any] func(body []byte) (*Request[T], error)

// Handler serves one webhook; name is its label in metrics. The body of a request
// is an AdmissionReview, and so is the response, with code 200. Other codes are for
// requests that are no reviews, for reviews beyond the load or out of time, and for
// panics: then the failurePolicy of the webhook decides.
func Handler[T any](name string, m *Metrics, decode Decoder[T], judge Judge[T]) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		ctx, cancel := withDeadline(r, began)
		defer cancel()
		defer contain(ctx, w, name, m)

		r.Body = http.MaxBytesReader(w, r.Body, MaxBytes)
		request, a, err := answer(ctx, r, decode, judge)
		if err != nil {
			refuse(w, name, m, err)
			return
		}
		a.UID = request.UID
		m.observe(name, request, a, time.Since(began))
		klog.FromContext(ctx).V(3).Info("Reviewed", "webhook", name, "operation", request.Operation, "subresource", request.SubResource,
			"object", klog.KRef(request.Namespace, request.Name), "allowed", a.Allowed, "denied", a.DeniedBy, "warned", a.WarnedBy)

		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(admissionv1.AdmissionReview{ // an error means that the client has gone
			TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
			Response: a.AdmissionResponse,
		})
	})
}

// refuse what gets no answer.
func refuse(w http.ResponseWriter, name string, m *Metrics, err error) {
	code := http.StatusBadRequest
	var bad *badRequest
	switch {
	case errors.Is(err, errBusy):
		m.refused.WithLabelValues(name, "busy").Inc()
		w.Header().Set("Retry-After", "1")
		code = http.StatusTooManyRequests
	case errors.Is(err, ErrOutOfTime):
		m.refused.WithLabelValues(name, "late").Inc()
		code = http.StatusGatewayTimeout
	case errors.As(err, &bad):
		code = bad.code
		fallthrough
	default:
		m.malformed.WithLabelValues(name).Inc()
	}
	http.Error(w, err.Error(), code)
}

// ErrOutOfTime is what a Judge returns that did not come to an end in time. The
// failurePolicy of the webhook decides then.
var ErrOutOfTime = errors.New("the review took longer than the API server waits; make the object smaller, or try again")

// answer returns the request of a review and the answer to it. An error means that
// there is none: the body is no review, or the time is over.
func answer[T any](ctx context.Context, r *http.Request, decode Decoder[T], judge Judge[T]) (*admissionv1.AdmissionRequest, Answer, error) {
	body, err := readBody(r)
	if err != nil {
		return nil, Answer{}, err
	}
	request, err := decode(body)
	if err == nil {
		var a Answer
		if a, err = judge(ctx, request); err == nil {
			return &request.AdmissionRequest, a, nil
		}
		if errors.Is(err, ErrOutOfTime) {
			return nil, Answer{}, err
		}
		return &request.AdmissionRequest, badObject(err), nil
	}
	// If only the object cannot be decoded, the review is answered too.
	rest, restErr := Decode[json.RawMessage](body)
	if restErr != nil {
		return nil, Answer{}, restErr
	}
	return &rest.AdmissionRequest, badObject(err), nil
}

// withDeadline ends the context a little before the API server stops waiting.
func withDeadline(r *http.Request, began time.Time) (context.Context, context.CancelFunc) {
	timeout, err := time.ParseDuration(r.URL.Query().Get("timeout"))
	if err != nil || timeout <= 0 {
		timeout = defaultTimeout
	}
	timeout = min(timeout, MaxTimeout)
	return context.WithDeadline(r.Context(), began.Add(timeout-timeout/10))
}

// contain ends a panic at the request that caused it.
func contain(ctx context.Context, w http.ResponseWriter, name string, m *Metrics) {
	cause := recover()
	if cause == nil {
		return
	}
	m.panics.WithLabelValues(name).Inc()
	klog.FromContext(ctx).Error(fmt.Errorf("panic: %v", cause), "Review broken off", "webhook", name, "stack", string(debug.Stack()))
	http.Error(w, "the review was broken off by an internal error; the log of the webhook has more", http.StatusInternalServerError)
}
