package tapp

import (
	"context"
	"errors"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/process/parallel"
	"tkestack.io/tapp/webhook/review"
	"tkestack.io/tapp/webhook/rule"
)

// Validator answers reviews of /validate/tapp.
type Validator struct {
	dryRuns dryRunner
	reads   Reads
}

// Validate judges a TApp, or a change of its scale.
func (v *Validator) Validate(ctx context.Context, r *review.Request[*tappv1.TApp]) (review.Answer, error) {
	if r.Operation != admissionv1.Create && r.Operation != admissionv1.Update {
		return review.Allow(nil, nil), nil
	}
	switch {
	case r.SubResource == "scale" && isKind(&r.AdmissionRequest, "scale"):
		return v.validateScale(ctx, r)
	case isKind(&r.AdmissionRequest, ""):
		c, err := readCandidate(r)
		if err != nil {
			return review.Answer{}, err
		}
		return v.judge(ctx, c)
	case r.SubResource != "" && r.SubResource != "scale":
		return review.Allow(nil, nil), nil // the status is the controller's
	}
	return review.Answer{}, review.WrongKind(tappv1.Resource(), &r.AdmissionRequest)
}

// isKind says whether the object is of the kind that TApps, or one of their
// subresources, have.
func isKind(r *admissionv1.AdmissionRequest, subresource string) bool {
	want := metav1.GroupVersionKind(tappv1.GroupVersionKind())
	if subresource == "scale" {
		want = metav1.GroupVersionKind(autoscalingv1.SchemeGroupVersion.WithKind("Scale"))
	}
	return r.Resource == metav1.GroupVersionResource(tappv1.Resource()) && r.SubResource == subresource && r.Kind == want
}

// candidate is what a review is about.
type candidate struct {
	// now is to be stored, was is stored; both have their defaults. was is nil on
	// creation.
	now, was *tappv1.TApp
	// rules that the change can break.
	rules rule.Rules[tappv1.TApp]
}

func readCandidate(r *review.Request[*tappv1.TApp]) (candidate, error) {
	c := candidate{now: r.Object, rules: Rules()}
	if c.now == nil {
		return c, errors.New("the request has no object")
	}
	c.now.Namespace = r.Namespace
	c.now.Status = tappv1.TAppStatus{}
	if r.Operation == admissionv1.Update {
		if c.was = r.OldObject; c.was == nil {
			return c, errors.New("the request has no old object")
		}
		c.now.Status = c.was.Status // which this request cannot change
		tappv1.Default(c.was)
	}
	tappv1.Default(c.now)
	return c, nil
}

// judge a TApp by the rules first. Only what they admit is asked of the cluster.
func (v *Validator) judge(ctx context.Context, c candidate) (review.Answer, error) {
	if c.was != nil && same(c.now.Spec, c.was.Spec) {
		return review.Allow(nil, nil), nil // labels, finalizers
	}
	var warnings rule.Warnings
	denied, err := c.rules.Judge(ctx, c.now, c.was, &warnings)
	if err != nil {
		return review.Answer{}, fmt.Errorf("%w (%w)", review.ErrOutOfTime, err)
	}
	if len(denied) > 0 {
		return deny(c.now.Name, denied), nil
	}
	c.rules.Advise(ctx, c.now, c.was, &warnings)
	if c.now.DeletionTimestamp == nil {
		var preview rule.Warnings // is made beside the dry runs
		var beside parallel.Group
		beside.Do(func() { v.preview(ctx, c, &preview) })
		denied := v.dryRuns.run(ctx, c, &warnings)
		beside.Wait()
		if len(denied) > 0 {
			a := deny(c.now.Name, denied)
			a.Warnings = warnings.Texts
			return a, nil
		}
		v.findOverlap(ctx, c, &warnings)
		v.findClaimNames(ctx, c, &warnings)
		warnings.Append(preview)
	}
	return review.Allow(warnings.Texts, warnings.Rules), nil
}

func deny(name string, found []rule.Finding) review.Answer {
	return review.Deny(rule.Invalid(tappv1.GroupVersionKind().GroupKind(), name, found), rule.Names(found))
}

// validateScale judges a change of replicas alone. A Scale has them at the same
// path as a TApp, and is decoded as one.
func (v *Validator) validateScale(ctx context.Context, r *review.Request[*tappv1.TApp]) (review.Answer, error) {
	if r.Object == nil {
		return review.Answer{}, errors.New("the request has no object")
	}
	replicas := new(int32) // a Scale leaves out a 0
	if r.Object.Spec.Replicas != nil {
		replicas = r.Object.Spec.Replicas
	}
	rules := scaleRules()
	tapps, err := v.reads.TApps(ctx, r.Namespace)
	at := slices.IndexFunc(tapps, func(t *tappv1.TApp) bool { return t.Name == r.Name })
	if err != nil || at < 0 {
		// The cache is behind. The rules need only the name and the number.
		now := &tappv1.TApp{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name}, Spec: tappv1.TAppSpec{Replicas: replicas}}
		tappv1.Default(now)
		denied, err := rules.Judge(ctx, now, nil, &rule.Warnings{})
		if err != nil {
			return review.Answer{}, fmt.Errorf("%w (%w)", review.ErrOutOfTime, err)
		}
		if len(denied) > 0 {
			return deny(r.Name, denied), nil
		}
		return review.Allow(nil, nil), nil
	}
	was := tapps[at].DeepCopy()
	tappv1.Default(was)
	now := was.DeepCopy()
	now.Spec.Replicas = replicas
	return v.judge(ctx, candidate{now: now, was: was, rules: rules})
}
