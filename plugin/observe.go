package plugin

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
)

// observed is a TApp with its plan.
type observed struct {
	tapp  *tappv1.TApp
	spec  tappv1.TAppSpec // with the defaults
	input plan.Input
	plan  plan.Plan
	// policy by which the plan was made.
	policy policy
	// byID and next are the instances and the actions of the plan, by instance id.
	byID map[int]*plan.Instance
	next map[string][]plan.Action
}

// get reads a TApp.
func (s *session) get(ctx context.Context, name string) (*tappv1.TApp, error) {
	t, err := s.tapps.TApps(s.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err // it says all: tapps.apps.tkestack.io "x" not found
	}
	t.SetGroupVersionKind(tappv1.GroupVersionKind())
	return t, nil
}

// observe reads a TApp and what the planner needs, and plans.
func (s *session) observe(ctx context.Context, name string) (*observed, error) {
	t, err := s.get(ctx, name)
	if err != nil {
		return nil, err
	}
	pods, err := s.pods(ctx, t.Namespace)
	if err != nil {
		return nil, err
	}
	return s.compute(ctx, t, pods)
}

// pods of all TApps of the namespace.
func (s *session) pods(ctx context.Context, namespace string) ([]*corev1.Pod, error) {
	list, err := s.core.Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: tappv1.LabelInstanceID})
	if err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	out := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
		out[i].SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	}
	return out, nil
}

// compute makes the plan of a TApp. Pods of other TApps are left out.
func (s *session) compute(ctx context.Context, t *tappv1.TApp, pods []*corev1.Pod) (*observed, error) {
	defaulted := t.DeepCopy()
	tappv1.Default(defaulted)
	seen := t
	if t.Spec.Selector == nil && t.Status.ScaleLabelSelector == "" && defaulted.Spec.Selector != nil {
		// The controller stores the selector before it does anything else. Nobody asks about
		// that step, so it counts as done.
		seen = t.DeepCopy()
		seen.Status.ScaleLabelSelector = metav1.FormatLabelSelector(defaulted.Spec.Selector)
	}
	policy := s.policy(ctx, &defaulted.Spec)
	o := &observed{tapp: t, spec: defaulted.Spec, policy: policy, byID: map[int]*plan.Instance{}, next: map[string][]plan.Action{},
		input: plan.Input{TApp: seen, Now: time.Now(), Policy: policy.Policy}}
	for _, pod := range pods {
		if pod.Namespace == t.Namespace && hasInstanceName(t.Name, pod.Name) {
			o.input.Pods = append(o.input.Pods, pod)
		}
	}
	if len(t.Spec.VolumeClaimTemplates) > 0 {
		claims, err := s.core.PersistentVolumeClaims(t.Namespace).List(ctx, metav1.ListOptions{LabelSelector: tappv1.LabelInstanceID})
		if err != nil {
			return nil, fmt.Errorf("listing claims: %w", err)
		}
		for i := range claims.Items {
			for _, template := range t.Spec.VolumeClaimTemplates {
				if hasInstanceName(template.Name+"-"+t.Name, claims.Items[i].Name) {
					o.input.Claims = append(o.input.Claims, &claims.Items[i])
				}
			}
		}
	}
	o.plan = plan.Compute(o.input)
	for i := range o.plan.Instances {
		o.byID[o.plan.Instances[i].Num] = &o.plan.Instances[i]
	}
	for _, a := range o.plan.Actions {
		o.next[a.ID] = append(o.next[a.ID], a)
	}
	return o, nil
}

// hasInstanceName reports whether a name is <stem>-<instance id>.
func hasInstanceName(stem, name string) bool {
	id, ok := strings.CutPrefix(name, stem+"-")
	if !ok {
		return false
	}
	_, ok = plan.ParseID(id)
	return ok
}

// instance returns what the plan says of an id, or nil.
func (o *observed) instance(id int) *plan.Instance { return o.byID[id] }

// actions of the plan for an instance.
func (o *observed) actions(id string) []plan.Action { return o.next[id] }
