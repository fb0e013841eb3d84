package webhook

import (
	"context"
	"errors"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// mutate answers reviews of /mutate/tapp.
func mutate(_ context.Context, r *request[map[string]any]) (answer, error) {
	if r.SubResource != "" || r.Operation != admissionv1.Create && r.Operation != admissionv1.Update {
		return allowed(), nil // nothing to complete
	}
	if !isKind(&r.AdmissionRequest, "") {
		return answer{}, foreignKind(&r.AdmissionRequest)
	}
	c, err := complete(r.Object, r.OldObject)
	if err != nil {
		return answer{}, err
	}
	if len(c.Denied) > 0 {
		found := findings("LegacyName", c.Denied)
		a := denial(invalid(r.Name, found))
		a.denied = rulesOf(found)
		return a, nil
	}
	patch, err := c.render()
	if err != nil {
		return answer{}, err
	}
	a := allowed(c.Warnings...)
	if len(c.Warnings) > 0 {
		a.warned = []string{"LegacyName"}
	}
	if patch != nil {
		kind := admissionv1.PatchTypeJSONPatch
		a.Patch, a.PatchType = patch, &kind
	}
	return a, nil
}

// validator answers reviews of /validate/tapp.
type validator struct {
	pods  podTrial
	reads Reads
}

func (v *validator) validate(ctx context.Context, r *request[*tappv1.TApp]) (answer, error) {
	if r.Operation != admissionv1.Create && r.Operation != admissionv1.Update {
		return allowed(), nil
	}
	switch {
	case r.SubResource == "scale" && isKind(&r.AdmissionRequest, "scale"):
		return v.validateScale(ctx, r)
	case isKind(&r.AdmissionRequest, ""):
		c, err := readCandidate(r)
		if err != nil {
			return answer{}, err
		}
		return v.decide(ctx, c), nil
	case r.SubResource != "" && r.SubResource != "scale":
		return allowed(), nil // the status is the controller's
	}
	return answer{}, foreignKind(&r.AdmissionRequest)
}

// candidate is what a review is about.
type candidate struct {
	// now is what is to be stored, and was what is; both have their defaults. was
	// is nil on creation.
	now, was *tappv1.TApp
	// rules that can be broken; nil: all.
	rules []string
}

func readCandidate(r *request[*tappv1.TApp]) (candidate, error) {
	c := candidate{now: r.Object}
	if c.now == nil {
		return c, errors.New("the request has no object")
	}
	c.now.Namespace = r.Namespace
	c.now.Status = tappv1.TAppStatus{}
	if r.Operation == admissionv1.Update {
		if c.was = r.OldObject; c.was == nil {
			return c, errors.New("the request has no old object")
		}
		c.now.Status = c.was.Status // which this cannot change
		tappv1.Default(c.was)
	}
	tappv1.Default(c.now)
	return c, nil
}

// decide judges a TApp by the rules, and only then asks the cluster: what is
// wrong in itself need not be tried.
func (v *validator) decide(ctx context.Context, c candidate) answer {
	if c.was != nil && same(c.now.Spec, c.was.Spec) {
		return allowed() // labels, finalizers
	}
	fresh, old := c.judge()
	if len(fresh) > 0 {
		a := denial(invalid(c.now.Name, fresh))
		a.denied = rulesOf(fresh)
		return a
	}
	var notes advice
	for _, f := range old {
		notes.add(f.rule, fmt.Sprintf("%s (this was so before, and does not block the update)", f))
	}
	c.advise(&notes)
	if c.now.DeletionTimestamp == nil {
		var foreseen advice // while the cluster thinks about the pods
		var beside group
		beside.do(func() { v.preview(ctx, c, &foreseen) })
		refused := v.pods.try(ctx, c, &notes)
		beside.wait()
		if len(refused) > 0 {
			a := denial(invalid(c.now.Name, refused))
			a.denied, a.Warnings = rulesOf(refused), notes.texts
			return a
		}
		v.findOverlap(ctx, c, &notes)
		notes.addAll(foreseen)
	}
	a := allowed(notes.texts...)
	a.warned = notes.rules
	return a
}

// judge returns what is wrong, and what was wrong before in the same way.
func (c *candidate) judge() (fresh, old []finding) {
	for _, r := range rules {
		if c.rules != nil && !slices.Contains(c.rules, r.name) {
			continue
		}
		if r.judge != nil {
			found := findings(r.name, r.judge(c.now))
			if c.was != nil && len(found) > 0 {
				var before []finding
				found, before = ratchet(found, findings(r.name, r.judge(c.was)))
				old = append(old, before...)
			}
			fresh = append(fresh, found...)
		}
		if r.compare != nil && c.was != nil {
			fresh = append(fresh, findings(r.name, r.compare(c.now, c.was))...)
		}
	}
	return fresh, old
}

func (c *candidate) advise(notes *advice) {
	for _, r := range rules {
		if r.advise != nil && (c.rules == nil || slices.Contains(c.rules, r.name)) {
			notes.add(r.name, r.advise(c.now, c.was)...)
		}
	}
}

// advice collects warnings, and who gives them.
type advice struct {
	texts []string
	rules []string
}

// mostWarnings of one source. The API server cuts warnings short that have more
// than 4,096 characters together.
const mostWarnings = 8

func (a *advice) add(rule string, texts ...string) {
	if len(texts) == 0 {
		return
	}
	if more := len(texts) - mostWarnings; more > 0 {
		texts = append(slices.Clone(texts[:mostWarnings]), fmt.Sprintf("and %d more", more))
	}
	a.texts = append(a.texts, texts...)
	if !slices.Contains(a.rules, rule) {
		a.rules = append(a.rules, rule)
	}
}

func (a *advice) addAll(b advice) {
	a.texts, a.rules = append(a.texts, b.texts...), append(a.rules, b.rules...)
}

// validateScale judges a change of replicas alone. A Scale has them where a TApp
// has them, and is read as one.
func (v *validator) validateScale(ctx context.Context, r *request[*tappv1.TApp]) (answer, error) {
	if r.Object == nil {
		return answer{}, errors.New("the request has no object")
	}
	replicas := new(int32) // which a Scale leaves out when it is 0
	if r.Object.Spec.Replicas != nil {
		replicas = r.Object.Spec.Replicas
	}
	tapps, err := v.reads.TApps(ctx, r.Namespace)
	at := slices.IndexFunc(tapps, func(t *tappv1.TApp) bool { return t.Name == r.Name })
	if err != nil || at < 0 {
		// A cache that is behind. The rules need but the name and the number.
		c := candidate{now: &tappv1.TApp{}, rules: scaleRules}
		c.now.Name, c.now.Namespace, c.now.Spec.Replicas = r.Name, r.Namespace, replicas
		tappv1.Default(c.now)
		fresh, _ := c.judge()
		if len(fresh) == 0 {
			return allowed(), nil
		}
		a := denial(invalid(r.Name, fresh))
		a.denied = rulesOf(fresh)
		return a, nil
	}
	was := tapps[at].DeepCopy()
	tappv1.Default(was)
	now := was.DeepCopy()
	now.Spec.Replicas = replicas
	return v.decide(ctx, candidate{now: now, was: was, rules: scaleRules}), nil
}
