package tapp

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/webhook/review"
	"tkestack.io/tapp/webhook/rule"
)

// Labels in metrics of what completion denies and warns of.
const (
	ruleLegacyName    = "LegacyName"
	ruleSelectorTaken = "SelectorTaken"
)

// Mutate answers reviews of /mutate/tapp.
func Mutate(_ context.Context, r *review.Request[map[string]any]) (review.Answer, error) {
	if r.SubResource != "" || r.Operation != admissionv1.Create && r.Operation != admissionv1.Update {
		return review.Allow(nil, nil), nil // nothing to complete
	}
	if !isKind(&r.AdmissionRequest, "") {
		return review.Answer{}, review.WrongKind(tappv1.Resource(), &r.AdmissionRequest)
	}
	c, err := complete(r.Object, r.OldObject)
	if err != nil {
		return review.Answer{}, err
	}
	if len(c.Denied) > 0 {
		return deny(r.Name, rule.Findings(ruleLegacyName, c.Denied)), nil
	}
	patch, err := c.render()
	if err != nil {
		return review.Answer{}, err
	}
	a := review.Allow(c.Warnings.Texts, c.Warnings.Rules)
	a.SetPatch(patch)
	return a, nil
}
