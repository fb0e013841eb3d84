package plugin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/client"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
)

// Where the documentation installs the controller, and the flag for those who did not.
const (
	defaultControllerNamespace = "tapp-system"
	flagControllerNamespace    = "controller-namespace"
)

// policy of the controller, as far as it is known.
type policy struct {
	plan.Policy
	// unknown says why the policy cannot be read, and its defaults are assumed. It is
	// nil for a policy that was read.
	unknown error
}

// policy reads once what the controller published.
func (s *session) policy(ctx context.Context, spec *tappv1.TAppSpec) policy {
	if s.published == nil {
		p := s.readPolicy(ctx)
		s.published = &p
	}
	p := *s.published
	if p.unknown != nil && spec.UpdateStrategy.InPlaceUpdate.Resources {
		p.Resize = s.hasResize(ctx)
	}
	return p
}

func (s *session) readPolicy(ctx context.Context) policy {
	object, err := s.core.ConfigMaps(s.controllerNamespace).Get(ctx, tappv1.PolicyConfigMap, metav1.GetOptions{})
	if err == nil {
		var p plan.Policy
		if p, err = policyOf(object); err == nil {
			return policy{Policy: p}
		}
	}
	return policy{
		Policy:  plan.Policy{DeletePodAfterAppFinish: true, NodeLostAfter: 5 * time.Minute, Tracking: tappv1.DefaultTrackingLabel},
		unknown: fmt.Errorf("cannot read the controller's policy in namespace %s: %w", s.controllerNamespace, err),
	}
}

// policyOf decodes what the controller published.
func policyOf(object *corev1.ConfigMap) (plan.Policy, error) {
	text, ok := object.Data[tappv1.PolicyKey]
	if !ok {
		return plan.Policy{}, fmt.Errorf("configmaps %q has no key %q", object.Name, tappv1.PolicyKey)
	}
	var p tappv1.PublishedPolicy
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return plan.Policy{}, fmt.Errorf("configmaps %q, key %q: %w", object.Name, tappv1.PolicyKey, err)
	}
	return plan.Policy{DeletePodAfterAppFinish: p.DeletePodAfterAppFinish, NodeLostAfter: p.NodeLostAfter.Duration, Resize: p.Resize, Tracking: p.TrackingLabel}, nil
}

// hasResize asks the cluster, once, whether pods can be resized.
func (s *session) hasResize(ctx context.Context) bool {
	if s.resize == nil {
		// Whoever may not ask gets the answer for clusters of today.
		has, err := client.HasResize(ctx, s.core.RESTClient())
		s.resize = new(err != nil || has)
	}
	return *s.resize
}

// policyNote says which policy the plan assumes, where that decides what becomes of one of
// the instances; otherwise it is empty.
func (o *observed) policyNote(instances []plan.Instance) string {
	if o.policy.unknown == nil {
		return ""
	}
	// The other fields of the policy decide nothing here: the plugin does not look at
	// nodes, and asks the cluster about Resize.
	in := o.Input
	in.Policy.DeletePodAfterAppFinish = !in.Policy.DeletePodAfterAppFinish
	other := plan.Compute(in).Instances
	same := func(i plan.Instance) bool {
		k, found := slices.BinarySearchFunc(other, i.Num, func(o plan.Instance, num int) int { return cmp.Compare(o.Num, num) })
		return found && reflect.DeepEqual(i, other[k])
	}
	if !slices.ContainsFunc(instances, func(i plan.Instance) bool { return !same(i) }) {
		return ""
	}
	return fmt.Sprintf("Note: %v; assuming --delete-pod-after-app-finish=%t, the default. See --%s.",
		o.policy.unknown, o.policy.DeletePodAfterAppFinish, flagControllerNamespace)
}

// note prints to the error output, so that it is no part of what scripts read.
func (e *environment) note(text string) {
	if text != "" {
		_, _ = fmt.Fprintln(e.streams.ErrOut, text)
	}
}
