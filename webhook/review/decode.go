package review

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "k8s.io/apimachinery/pkg/util/json"
)

// MaxBytes of a review: an object and the stored one, each of which the API server
// bounds by 3 MiB, and what is around them.
const MaxBytes = 8 << 20

// Request of a review, with its objects as a T. They are decoded together with what
// is around them, because every pass over the text of a large object takes time.
type Request[T any] struct {
	admissionv1.AdmissionRequest `json:",inline"`
	Object                       T `json:"object"`
	OldObject                    T `json:"oldObject"`
}

// Decode reads exactly what the API server sends: names of fields in their own
// case, and no other version.
func Decode[T any](body []byte) (*Request[T], error) {
	var in struct {
		metav1.TypeMeta `json:",inline"`
		Request         *Request[T] `json:"request"`
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

// badRequest is the error for a request that is no review.
type badRequest struct {
	code int
	why  string
}

func (b *badRequest) Error() string { return b.why }

func readBody(r *http.Request) ([]byte, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, &badRequest{http.StatusUnsupportedMediaType, fmt.Sprintf("the content type is %q; send application/json", r.Header.Get("Content-Type"))}
	}
	// The buffer has room for most bodies at once. A caller that promises much and
	// sends little takes no more.
	body := bytes.NewBuffer(make([]byte, 0, bytes.MinRead+max(0, min(r.ContentLength, 64<<10))))
	_, err := body.ReadFrom(r.Body)
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, &badRequest{http.StatusRequestEntityTooLarge, fmt.Sprintf("the review has more than %d bytes", MaxBytes)}
	}
	if errors.Is(err, errBusy) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("read the review: %w", err)
	}
	return body.Bytes(), nil
}
