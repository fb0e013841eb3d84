package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"runtime/debug"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/klog/v2"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

const (
	// mostBytes of a review: an object and the stored one, each of which the API
	// server bounds by 3 MiB, and what is around them.
	mostBytes = 8 << 20
	// The API server waits for 1 to 30 s, and says in the request how long.
	defaultTimeout = 10 * time.Second
	longestTimeout = 30 * time.Second
)

// answer to a review, and by which rules.
type answer struct {
	*admissionv1.AdmissionResponse
	// denied and warned name the rules that did so.
	denied []string
	warned []string
}

// request of a review, with its objects as a T. They are decoded together with what
// is around them: of large objects every pass over the text counts.
type request[T any] struct {
	admissionv1.AdmissionRequest `json:",inline"`
	Object                       T `json:"object"`
	OldObject                    T `json:"oldObject"`
}

// judge answers the request of a review.
type judge[T any] func(context.Context, *request[T]) (answer, error)

// decoder reads a review: decodeReview, or what does the same.
type decoder[T any] func(body []byte) (*request[T], error)

// review serves one webhook: what comes in is an AdmissionReview, and so is what
// goes out, with code 200. Other codes are for requests that are no reviews, and
// for panics: then the failurePolicy of the webhook decides.
func review[T any](name string, m *metrics, decode decoder[T], decide judge[T]) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		ctx, cancel := withDeadline(r, began)
		defer cancel()
		defer contain(ctx, w, name, m)

		r.Body = http.MaxBytesReader(w, r.Body, mostBytes)
		about, a, err := answered(ctx, r, decode, decide)
		if err != nil {
			m.malformed.WithLabelValues(name).Inc()
			var bad *badRequest
			if !errors.As(err, &bad) {
				bad = &badRequest{code: http.StatusBadRequest}
			}
			http.Error(w, err.Error(), bad.code)
			return
		}
		a.UID = about.UID
		m.observe(name, about, a, time.Since(began))
		klog.FromContext(ctx).V(3).Info("Reviewed", "webhook", name, "operation", about.Operation, "subresource", about.SubResource,
			"tapp", klog.KRef(about.Namespace, about.Name), "allowed", a.Allowed, "denied", a.denied, "warned", a.warned)

		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(admissionv1.AdmissionReview{ // whoever asked has gone if this fails
			TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
			Response: a.AdmissionResponse,
		})
	}
}

// answered is a review's request and the answer to it; an error is for what is no
// review.
func answered[T any](ctx context.Context, r *http.Request, decode decoder[T], decide judge[T]) (*admissionv1.AdmissionRequest, answer, error) {
	body, err := readBody(r)
	if err != nil {
		return nil, answer{}, err
	}
	about, err := decode(body)
	if err == nil {
		var a answer
		if a, err = decide(ctx, about); err == nil {
			return &about.AdmissionRequest, a, nil
		}
		return &about.AdmissionRequest, badObject(err), nil
	}
	// An object that cannot be read is answered too, if the rest can.
	rest, restErr := decodeReview[json.RawMessage](body)
	if restErr != nil {
		return nil, answer{}, restErr
	}
	return &rest.AdmissionRequest, badObject(err), nil
}

func badObject(err error) answer {
	a := denial(apierrors.NewBadRequest(err.Error()).Status())
	a.denied = []string{"Request"}
	return a
}

// withDeadline ends the context a little before the API server stops waiting.
func withDeadline(r *http.Request, began time.Time) (context.Context, context.CancelFunc) {
	timeout, err := time.ParseDuration(r.URL.Query().Get("timeout"))
	if err != nil || timeout <= 0 {
		timeout = defaultTimeout
	}
	timeout = min(timeout, longestTimeout)
	return context.WithDeadline(r.Context(), began.Add(timeout-timeout/10))
}

// contain ends a panic at the request that caused it.
func contain(ctx context.Context, w http.ResponseWriter, name string, m *metrics) {
	cause := recover()
	if cause == nil {
		return
	}
	m.panics.WithLabelValues(name).Inc()
	klog.FromContext(ctx).Error(fmt.Errorf("panic: %v", cause), "Review broken off", "webhook", name, "stack", string(debug.Stack()))
	http.Error(w, "the review was broken off by an internal error; the log of the webhook has more", http.StatusInternalServerError)
}

// badRequest is one that is no review.
type badRequest struct {
	code int
	why  string
}

func (b *badRequest) Error() string { return b.why }

func readBody(r *http.Request) ([]byte, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, &badRequest{http.StatusUnsupportedMediaType, fmt.Sprintf("the content type is %q; send application/json", r.Header.Get("Content-Type"))}
	}
	// Of one piece, unless it claims to be larger than nearly all of them.
	body := bytes.NewBuffer(make([]byte, 0, bytes.MinRead+max(0, min(r.ContentLength, 1<<20))))
	_, err := body.ReadFrom(r.Body)
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, &badRequest{http.StatusRequestEntityTooLarge, fmt.Sprintf("the review has more than %d bytes", mostBytes)}
	}
	if err != nil {
		return nil, fmt.Errorf("read the review: %w", err)
	}
	return body.Bytes(), nil
}

// decodeReview reads exactly what the API server sends: names of fields in their
// own case, and no other version.
func decodeReview[T any](body []byte) (*request[T], error) {
	var in struct {
		metav1.TypeMeta `json:",inline"`
		Request         *request[T] `json:"request"`
	}
	if err := kjson.Unmarshal(body, &in); err != nil {
		return nil, &badRequest{http.StatusBadRequest, fmt.Sprintf("the body is no AdmissionReview: %v", err)}
	}
	if want := admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"); in.GroupVersionKind() != want {
		return nil, &badRequest{http.StatusBadRequest, fmt.Sprintf("the body is a %q of %q; send an AdmissionReview of admission.k8s.io/v1", in.Kind, in.APIVersion)}
	}
	if in.Request == nil || in.Request.UID == "" {
		return nil, &badRequest{http.StatusBadRequest, "the AdmissionReview has no request, or one without a UID"}
	}
	return in.Request, nil
}

// isKind says whether the object is of the kind that a resource, or one of its
// subresources, has.
func isKind(r *admissionv1.AdmissionRequest, subresource string) bool {
	want := metav1.GroupVersionKind(tappv1.GroupVersionKind())
	if subresource == "scale" {
		want = metav1.GroupVersionKind(autoscalingv1.SchemeGroupVersion.WithKind("Scale"))
	}
	return r.Resource == metav1.GroupVersionResource(tappv1.Resource()) && r.SubResource == subresource && r.Kind == want
}

// foreignKind is the error for requests that the webhook is not for.
func foreignKind(r *admissionv1.AdmissionRequest) error {
	resource := r.Resource.Resource
	if r.SubResource != "" {
		resource += "/" + r.SubResource
	}
	return fmt.Errorf("this webhook judges tapps of %s, and got %s %s/%s of kind %s: correct the rules of the webhook configuration",
		tappv1.SchemeGroupVersion, resource, r.Resource.Group, r.Resource.Version, r.Kind.Kind)
}

func allowed(warnings ...string) answer {
	return answer{AdmissionResponse: &admissionv1.AdmissionResponse{Allowed: true, Warnings: warnings}}
}

func denial(status metav1.Status) answer {
	return answer{AdmissionResponse: &admissionv1.AdmissionResponse{Result: &status}}
}
