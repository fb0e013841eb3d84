// Package confirmation judges and completes Confirmations. Each rule has a file
// (rule_*.go), a name that is a label of metrics, and sentences that say what to do.
//
// It writes who confirmed, and the AppSet or AdvDeployment as owner. Nothing here is needed for safety: the
// controller takes a Confirmation only by the token of the gate that waits, and a policy of
// the chart holds that nobody speaks for somebody else also while this is away.
package confirmation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/webhook/review"
	"tkestack.io/tapp/webhook/rule"
)

// Webhook answers reviews of Confirmations.
type Webhook struct {
	// AppSet and AdvDeployment read one live. A cluster may have one of these kinds only.
	AppSet        func(ctx context.Context, namespace, name string) (*v1beta1.AppSet, error)
	AdvDeployment func(ctx context.Context, namespace, name string) (*v1beta1.AdvDeployment, error)
}

// gate is a Confirmation with what it is about.
type gate struct {
	confirmation *v1beta1.Confirmation
	owner        *metav1.OwnerReference // nil: there is nothing of this name
	rollout      *v1beta1.RolloutStatus // of it; nil: it has none
}

// read what is confirmed: the AppSet of the name, or the AdvDeployment, where no AppSet
// made it.
func (w Webhook) read(ctx context.Context, namespace string, c *v1beta1.Confirmation) (*gate, error) {
	g, name := &gate{confirmation: c}, c.Spec.AppSet
	own := func(kind string, o metav1.Object, rollout *v1beta1.RolloutStatus) {
		g.owner = &metav1.OwnerReference{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: kind, Name: name, UID: o.GetUID()}
		g.rollout = rollout
	}
	app, err := w.AppSet(ctx, namespace, name)
	switch {
	case err == nil:
		own(v1beta1.KindAppSet, app, app.Status.Rollout)
		return g, nil
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("reading AppSet %s: %w", name, err)
	}
	lone, err := w.AdvDeployment(ctx, namespace, name)
	switch {
	case err == nil && (lone.Status.Rollout != nil || lone.Labels[v1beta1.LabelAppSetUID] == ""):
		own(v1beta1.KindAdvDeployment, lone, lone.Status.Rollout)
	case err != nil && !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("reading AdvDeployment %s: %w", name, err)
	}
	return g, nil
}

func rules() rule.Rules[gate] {
	return rule.Rules[gate]{
		{Name: "AppSet", Judge: judgeAppSet, Alone: true},
		{Name: "Gate", Judge: judgeGate},
	}
}

// Mutate answers reviews of /mutate/confirmation.
func (w Webhook) Mutate(ctx context.Context, r *review.Request[*v1beta1.Confirmation]) (review.Answer, error) {
	if r.Operation != admissionv1.Create || r.SubResource != "" {
		return review.Allow(nil, nil), nil // the schema holds that it does not change
	}
	kind := v1beta1.SchemeGroupVersion.WithKind(v1beta1.KindConfirmation)
	if r.Resource != metav1.GroupVersionResource(v1beta1.Confirmations()) || r.Kind != metav1.GroupVersionKind(kind) {
		return review.Answer{}, review.WrongKind(v1beta1.Confirmations(), &r.AdmissionRequest)
	}
	if r.Object == nil {
		return review.Answer{}, errors.New("the request has no object")
	}
	g, err := w.read(ctx, r.Namespace, r.Object)
	if err != nil {
		return review.Answer{}, err
	}
	var warnings rule.Warnings
	denied, err := rules().Judge(ctx, g, nil, &warnings)
	if err != nil {
		return review.Answer{}, fmt.Errorf("%w (%w)", review.ErrOutOfTime, err)
	}
	if len(denied) > 0 {
		return review.Deny(rule.Invalid(kind.GroupKind(), r.Name, denied), rule.Names(denied)), nil
	}
	patch, err := stamp(g, r.UserInfo.Username)
	if err != nil {
		return review.Answer{}, err
	}
	a := review.Allow(nil, nil)
	a.SetPatch(patch)
	return a, nil
}

// stamp who confirms, and whose gate it is: a Confirmation goes with its owner.
func stamp(g *gate, user string) ([]byte, error) {
	owners := g.confirmation.OwnerReferences
	if !slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return o.UID == g.owner.UID }) {
		owners = append(slices.Clone(owners), *g.owner)
	}
	patch, err := json.Marshal([]map[string]any{
		{"op": "add", "path": "/spec/confirmedBy", "value": user},
		{"op": "add", "path": "/metadata/ownerReferences", "value": owners},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the patch: %w", err)
	}
	return patch, nil
}

// invalid is a finding of which the value is no news: the sentence says what is wrong.
func invalid(path, why string) *field.Error {
	return field.Invalid(field.NewPath(path), field.OmitValueType{}, why)
}
