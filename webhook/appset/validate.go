package appset

import (
	"context"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/webhook/review"
	"tkestack.io/tapp/webhook/rule"
)

// Webhook judges AppSets.
type Webhook struct {
	// AppSet gets a stored one, of which a change of its scale says the replicas alone.
	AppSet func(ctx context.Context, namespace, name string) (*v1beta1.AppSet, error)
}

// Validate answers reviews of /validate/appset: of an AppSet, or of a change of its scale.
func (w Webhook) Validate(ctx context.Context, r *review.Request[*v1beta1.AppSet]) (review.Answer, error) {
	scaled := r.SubResource == "scale"
	if r.Operation != admissionv1.Create && r.Operation != admissionv1.Update || r.SubResource != "" && !scaled {
		return review.Allow(nil, nil), nil
	}
	kind := v1beta1.SchemeGroupVersion.WithKind(v1beta1.KindAppSet)
	want := kind
	if scaled {
		want = autoscalingv1.SchemeGroupVersion.WithKind("Scale")
	}
	if r.Resource != metav1.GroupVersionResource(v1beta1.AppSets()) || r.Kind != metav1.GroupVersionKind(want) {
		return review.Answer{}, review.WrongKind(v1beta1.AppSets(), &r.AdmissionRequest)
	}
	now, was := r.Object, r.OldObject
	switch {
	case now == nil:
		return review.Answer{}, errors.New("the request has no object")
	case r.Operation == admissionv1.Update && was == nil:
		return review.Answer{}, errors.New("the request has no old object")
	}
	if scaled {
		stored, err := w.AppSet(ctx, r.Namespace, r.Name)
		if err != nil {
			return review.Allow(nil, nil), nil //nolint:nilerr // its schema judged it, and the controller tells of the rest
		}
		now, was = scaledTo(stored, now.Spec.Replicas), stored
	}
	if was != nil && (now.DeletionTimestamp != nil || equality.Semantic.DeepEqual(now.Spec, was.Spec)) {
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

// scaledTo is the AppSet with other replicas. A Scale has them at the same path, and leaves
// out a 0.
func scaledTo(stored *v1beta1.AppSet, replicas *int32) *v1beta1.AppSet {
	out := stored.DeepCopy()
	out.Spec.Replicas = new(int32)
	if replicas != nil {
		*out.Spec.Replicas = *replicas
	}
	return out
}
