package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plantemplate "tkestack.io/tapp/plan/template"
	"tkestack.io/tapp/test/sim/apiserver"
)

// policyComes is somebody's policy for pods, which is in force for a while.
const policyComes = "a policy for pods comes"

// policy for pods, by what it does.
type policy int

const (
	deniesImage  policy = iota // with 403, at creation and update
	invalidImage               // with 422 and no field, as policies do by default
	deadWebhook                // 500 to whatever is created or updated
	mutates                    // an immutable field of whatever is updated
	deniesOne                  // the pods of one instance
	liesToDryRun               // denies an image, and lets dry runs pass
	policies
)

// recreates says whether the API server's own validation refuses what the policy makes of an
// update, so that the pod goes.
func (p policy) recreates() bool { return p == mutates }

// drawPolicies has policies come and go while templates change.
func drawPolicies(p *Plan, rng *rand.Rand) {
	p.strikes(rng, policyComes, policyComes, policyComes, policyComes)
	p.edits(rng, "image", "image", "env", "image", "force")
}

// refuses says what the policy that is in force makes of a pod that is created or updated.
func (w *world) refuses(pod *corev1.Pod, update bool) error {
	if !w.has(classPolicies) || !w.is(policyComes) || len(pod.Spec.Containers) == 0 {
		return nil
	}
	denied := apierrors.NewForbidden(w.GroupResource(pods), pod.Name, fmt.Errorf("denied by a policy"))
	named := pod.Spec.Containers[0].Image == images()[w.policyOf%len(images())]
	switch policy(w.policyOf % int(policies)) {
	case deniesImage:
		if named {
			return denied
		}
	case invalidImage:
		if named {
			return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
				Message: "denied by a policy", Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Message: "denied by a policy"}}}}}
		}
	case deadWebhook:
		return apierrors.NewInternalError(fmt.Errorf("failed calling webhook: connection refused"))
	case mutates:
		if update {
			pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](7)
		}
	case deniesOne:
		if _, id := stem(keyOf(pod)); id == "0" {
			return denied
		}
	case liesToDryRun:
		if named && !w.IsDry() {
			return denied
		}
	}
	return nil
}

// tried is an answer that a process got to a dry run, or a write that says the same.
type tried struct {
	app, hash string
	create    bool
	at        time.Time
}

// heard notes the answers that let a process interrupt what serves, and refusals in earnest.
func (o *oracle) heard(r *request, a *apiserver.Answer) error {
	if !o.w.has(classPolicies) || r.Resource != pods || r.Sub != "" || r.Verb != "create" && r.Verb != "patch" {
		return nil
	}
	var pod struct {
		Metadata struct {
			Name   string             `json:"name"`
			Labels map[string]*string `json:"labels"`
		} `json:"metadata"`
		Spec json.RawMessage `json:"spec"`
	}
	name := r.Name
	if r.Verb == "create" {
		decoded, err := o.w.Decode(pods, r.Body)
		if err != nil {
			return nil
		}
		name = decoded.GetName()
		pod.Metadata.Labels = map[string]*string{tappv1.LabelTemplateHash: ptr.To(decoded.GetLabels()[tappv1.LabelTemplateHash])}
	} else if json.Unmarshal(r.Body, &pod) != nil {
		return nil
	}
	hash := ptr.Deref(pod.Metadata.Labels[tappv1.LabelTemplateHash], "")
	app, _ := stem(apiserver.KeyOf(r.Namespace, name))
	// The name and the quota are looked up last, and the quota gets back what the old pod has.
	passed := a.Status < 300 || r.Verb == "create" && (a.Status == http.StatusConflict || a.Status == http.StatusForbidden && bytes.Contains(a.Body, []byte("exceeded quota")))
	if hash != "" && passed {
		o.passed[r.replica.Name] = append(o.passed[r.replica.Name], tried{app, hash, r.Verb == "create", o.w.now()})
	}
	return o.repeated(r, a.Status, len(pod.Spec) > 0)
}

// repeated is R2: a patch that was refused is not made again before the gate of its pod was
// open in between.
func (o *oracle) repeated(r *request, code int, changes bool) error {
	current, ok := apiserver.Find[*corev1.Pod](o.w.Store, pods, r.Key())
	if r.IsDry() || r.Verb != "patch" || !changes || !ok || !hasGate(current) || gateOpen(current) || isChanging(current) || r.replica.isFollowed() {
		return nil
	}
	if code < 300 {
		return nil
	}
	key := r.replica.Name + string(current.UID)
	closed := conditionOf(current, tappv1.GateInPlaceUpdate).LastTransitionTime.Time
	if o.refusedAt[key].Equal(closed) {
		return fmt.Errorf("R2: pod %s stays out of its Services for a patch that was refused", current.Name)
	}
	if code == http.StatusForbidden || code == http.StatusUnprocessableEntity && !policy(o.w.policyOf%int(policies)).recreates() {
		o.refusedAt[key] = closed
	}
	return nil
}

// admitted is R1: what serves is interrupted only for what the process was told that the API
// server takes, at most a minute ago.
func (o *oracle) admitted(c *change, pod *corev1.Pod, id string, seen []*tappv1.TApp, create bool) error {
	if !o.w.has(classPolicies) {
		return nil
	}
	r := causeOf(c)
	for _, t := range seen {
		made := template(t, id)
		if wanted(t, id) != "" || made == nil {
			return nil
		}
		hashes, err := plantemplate.Hash(made)
		if err != nil || !create && hashes.Template == pod.Labels[tappv1.LabelTemplateHash] {
			return nil
		}
		for _, view := range o.views(r) {
			if !isServing(t, view.pod(t, id)) {
				return nil
			}
		}
		if slices.ContainsFunc(o.passed[r.replica.Name], func(x tried) bool {
			return x.app == keyOf(t) && x.hash == hashes.Template && x.create == create && r.issued.Sub(x.at) <= time.Minute+time.Second
		}) {
			return nil
		}
	}
	if len(seen) == 0 {
		return nil
	}
	return fmt.Errorf("R1: pod %s served, and is interrupted for what the API server was not seen to take", pod.Name)
}
