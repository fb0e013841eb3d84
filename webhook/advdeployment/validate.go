package advdeployment

import (
	"context"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/webhook/review"
	"tkestack.io/tapp/webhook/rule"
)

// Validate answers reviews of /validate/advdeployment.
func Validate(ctx context.Context, r *review.Request[*v1beta1.AdvDeployment]) (review.Answer, error) {
	if r.Operation != admissionv1.Create && r.Operation != admissionv1.Update || r.SubResource != "" {
		return review.Allow(nil, nil), nil // the schema checks a Scale
	}
	kind := v1beta1.SchemeGroupVersion.WithKind(v1beta1.KindAdvDeployment)
	if r.Resource != metav1.GroupVersionResource(v1beta1.AdvDeployments()) || r.Kind != metav1.GroupVersionKind(kind) {
		return review.Answer{}, review.WrongKind(v1beta1.AdvDeployments(), &r.AdmissionRequest)
	}
	now, was := r.Object, r.OldObject
	switch {
	case now == nil:
		return review.Answer{}, errors.New("the request has no object")
	case r.Operation == admissionv1.Update && was == nil:
		return review.Answer{}, errors.New("the request has no old object")
	case was != nil && (now.DeletionTimestamp != nil || equality.Semantic.DeepEqual(now.Spec, was.Spec)):
		return review.Allow(nil, nil), nil // labels, finalizers
	}
	now.Namespace = r.Namespace
	var warnings rule.Warnings
	denied, err := Rules().Judge(ctx, now, was, &warnings)
	if err != nil {
		return review.Answer{}, fmt.Errorf("%w (%w)", review.ErrOutOfTime, err)
	}
	if len(denied) > 0 {
		return review.Deny(rule.Invalid(kind.GroupKind(), now.Name, denied), rule.Names(denied)), nil
	}
	Rules().Advise(ctx, now, was, &warnings)
	return review.Allow(warnings.Texts, warnings.Rules), nil
}
