package plugin

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/ids"
	"tkestack.io/tapp/plan/kept"
	plan "tkestack.io/tapp/plan/tapp"
	"tkestack.io/tapp/plan/view"
)

// observed is a TApp with its plan, and the policy by which that was made.
type observed struct {
	*view.Observed
	policy policy
	// unread is why the revisions could not be read; nil: they were, or were not needed.
	unread error
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
	policy := s.policy(ctx, &defaulted.Spec)
	in := plan.Input{TApp: t, Now: time.Now(), Policy: policy.Policy}
	for _, pod := range pods {
		if pod.Namespace == t.Namespace && view.HasInstanceName(t.Name, pod.Name) {
			in.Pods = append(in.Pods, pod)
		}
	}
	if len(t.Spec.VolumeClaimTemplates) > 0 {
		claims, err := s.core.PersistentVolumeClaims(t.Namespace).List(ctx, metav1.ListOptions{LabelSelector: tappv1.LabelInstanceID})
		if err != nil {
			return nil, fmt.Errorf("listing claims: %w", err)
		}
		for i := range claims.Items {
			for _, template := range t.Spec.VolumeClaimTemplates {
				if view.HasInstanceName(template.Name+"-"+t.Name, claims.Items[i].Name) {
					in.Claims = append(in.Claims, &claims.Items[i])
				}
			}
		}
	}
	o := &observed{Observed: view.Observe(in), policy: policy}
	if o.Plan.NeedsRevisions {
		list, err := s.apps.ControllerRevisions(t.Namespace).List(ctx, metav1.ListOptions{LabelSelector: tappv1.LabelTApp + "=" + t.Name})
		if apierrors.IsForbidden(err) {
			o.unread = err
			return o, nil
		}
		if err != nil {
			return nil, fmt.Errorf("listing revisions: %w", err)
		}
		for i := range list.Items {
			in.Revisions = append(in.Revisions, &list.Items[i])
		}
		in.RevisionsRead = true
		o.Observed = view.Observe(in)
	}
	return o, nil
}

// unreadNote says whose next pod depends on revisions that the user may not list; otherwise it
// is empty.
func (o *observed) unreadNote(instances []plan.Instance) string {
	var waiting []int
	for i := range instances {
		if instances[i].Reason == kept.ReasonUnread {
			waiting = append(waiting, instances[i].Num)
		}
	}
	if o.unread == nil || len(waiting) == 0 {
		return ""
	}
	return fmt.Sprintf("Note: %v; with which template the next pod of %s comes is not known. The controller reads them.", o.unread, ids.Instances(waiting))
}
