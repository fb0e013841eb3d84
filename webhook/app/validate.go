package app

import (
	"context"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	appv1 "tkestack.io/tapp/crd/app/v1"
	"tkestack.io/tapp/webhook/review"
	"tkestack.io/tapp/webhook/rule"
)

// Validator answers reviews of /validate/app.
type Validator struct {
	// Naming finds the Apps that name a child.
	Naming Naming
}

// Validate judges an App that is created or updated.
func (v *Validator) Validate(ctx context.Context, r *review.Request[*appv1.App]) (review.Answer, error) {
	if r.Operation != admissionv1.Create && r.Operation != admissionv1.Update || r.SubResource != "" {
		return review.Allow(nil, nil), nil // the schema checks a Scale
	}
	if r.Resource != metav1.GroupVersionResource(appv1.Resource()) || r.Kind != metav1.GroupVersionKind(appv1.GroupVersionKind()) {
		return review.Answer{}, review.WrongKind(appv1.Resource(), &r.AdmissionRequest)
	}
	now, was := r.Object, r.OldObject
	switch {
	case now == nil:
		return review.Answer{}, errors.New("the request has no object")
	case r.Operation == admissionv1.Update && was == nil:
		return review.Answer{}, errors.New("the request has no old object")
	}
	now.Namespace = r.Namespace
	appv1.Default(now)
	if was != nil {
		appv1.Default(was)
		if equality.Semantic.DeepEqual(now.Spec, was.Spec) {
			return review.Allow(nil, nil), nil // labels, finalizers
		}
	}
	return v.judge(ctx, now, was)
}

func (v *Validator) judge(ctx context.Context, now, was *appv1.App) (review.Answer, error) {
	var warnings rule.Warnings
	denied, err := Rules().Judge(ctx, now, was, &warnings)
	if err != nil {
		return review.Answer{}, fmt.Errorf("%w (%w)", review.ErrOutOfTime, err)
	}
	if len(denied) > 0 {
		return review.Deny(rule.Invalid(appv1.GroupVersionKind().GroupKind(), now.Name, denied), rule.Names(denied)), nil
	}
	Rules().Advise(ctx, now, was, &warnings)
	taken, err := adviseChildren(ctx, now, v.Naming)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Advice left out")
	}
	warnings.Add("Children", taken...)
	return review.Allow(warnings.Texts, warnings.Rules), nil
}
