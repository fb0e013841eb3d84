package review

import (
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Answer to a review.
type Answer struct {
	*admissionv1.AdmissionResponse
	// DeniedBy and WarnedBy name the rules that denied and warned.
	DeniedBy, WarnedBy []string
}

// Allow the request, with warnings from these rules.
func Allow(warnings, rules []string) Answer {
	return Answer{AdmissionResponse: &admissionv1.AdmissionResponse{Allowed: true, Warnings: warnings}, WarnedBy: rules}
}

// Deny the request because of these rules.
func Deny(status metav1.Status, rules []string) Answer {
	return Answer{AdmissionResponse: &admissionv1.AdmissionResponse{Result: &status}, DeniedBy: rules}
}

// SetPatch has the API server change the object by a JSON patch; nil: it stays as it is.
func (a *Answer) SetPatch(patch []byte) {
	if patch != nil {
		kind := admissionv1.PatchTypeJSONPatch
		a.Patch, a.PatchType = patch, &kind
	}
}

func badObject(err error) Answer {
	return Deny(apierrors.NewBadRequest(err.Error()).Status(), []string{"Request"})
}

// WrongKind is the error for a request about another kind than the webhook's.
func WrongKind(want schema.GroupVersionResource, r *admissionv1.AdmissionRequest) error {
	resource := r.Resource.Resource
	if r.SubResource != "" {
		resource += "/" + r.SubResource
	}
	return fmt.Errorf("this webhook judges %s of %s, and got %s %s/%s of kind %s: correct the rules of the webhook configuration",
		want.Resource, want.GroupVersion(), resource, r.Resource.Group, r.Resource.Version, r.Kind.Kind)
}
