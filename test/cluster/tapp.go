package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/gen"
)

// Create a TApp.
func (r *Rig) Create(t *tappv1.TApp) *tappv1.TApp {
	r.Helper()
	created, err := r.TApps.Create(r.Context(), t, metav1.CreateOptions{})
	if err != nil {
		r.Fatalf("create TApp %s: %v", t.Name, err)
	}
	return created
}

// Get a TApp.
func (r *Rig) Get(name string) *tappv1.TApp {
	r.Helper()
	t, err := r.TApps.Get(r.Context(), name, metav1.GetOptions{})
	if err != nil {
		r.Fatalf("get TApp %s: %v", name, err)
	}
	return t
}

// Change a TApp as it is now, whoever else writes to it, and also when the API server
// does not answer for a while. What it refuses fails the test at once.
func (r *Rig) Change(name string, options ...gen.Option) *tappv1.TApp {
	r.Helper()
	var changed *tappv1.TApp
	var refused error
	r.Eventually("change TApp "+name, func(ctx context.Context) error {
		t, err := r.TApps.Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			for _, o := range options {
				o(t)
			}
			changed, err = r.TApps.Update(ctx, t, metav1.UpdateOptions{})
		}
		if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsNotFound(err) {
			refused = err
			return nil
		}
		return err
	})
	if refused != nil {
		r.Fatalf("change TApp %s: %v", name, refused)
	}
	return changed
}

// WaitTApp waits until the status of the TApp is about its present generation, and
// missing returns "".
func (r *Rig) WaitTApp(name, what string, missing func(*tappv1.TApp) string) *tappv1.TApp {
	r.Helper()
	var t *tappv1.TApp
	r.Eventually("TApp "+name+": "+what, func(ctx context.Context) error {
		var err error
		if t, err = r.TApps.Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		if t.Status.ObservedGeneration != t.Generation {
			return fmt.Errorf("generation %d, observed %d: %s", t.Generation, t.Status.ObservedGeneration, StatusOf(t))
		}
		if m := missing(t); m != "" {
			return fmt.Errorf("%s; status: %s", m, StatusOf(t))
		}
		return nil
	})
	return t
}

// WaitReady waits until the TApp is Ready at its present generation.
func (r *Rig) WaitReady(name string) *tappv1.TApp {
	r.Helper()
	return r.WaitTApp(name, "Ready", notReady)
}

// Ready returns what keeps the TApp from being Ready at its present generation.
func (r *Rig) Ready(ctx context.Context, name string) error {
	t, err := r.TApps.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if t.Status.ObservedGeneration != t.Generation {
		return fmt.Errorf("generation %d, observed %d: %s", t.Generation, t.Status.ObservedGeneration, StatusOf(t))
	}
	if m := notReady(t); m != "" {
		return errors.New(m + ": " + StatusOf(t))
	}
	return nil
}

func notReady(t *tappv1.TApp) string {
	c := meta.FindStatusCondition(t.Status.Conditions, tappv1.ConditionReady)
	switch {
	case c == nil || c.Status != metav1.ConditionTrue:
		return "not Ready"
	case c.ObservedGeneration != t.Generation:
		return fmt.Sprintf("Ready at generation %d of %d", c.ObservedGeneration, t.Generation)
	case meta.IsStatusConditionTrue(t.Status.Conditions, tappv1.ConditionStalled):
		return "Stalled"
	}
	return ""
}

// StatusOf a TApp in one line.
func StatusOf(t *tappv1.TApp) string {
	s := &t.Status
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %d replicas, %d ready, %d available, %d updated", s.AppStatus, s.Replicas, s.ReadyReplicas, s.AvailableReplicas, s.UpdatedReplicas)
	if len(s.Statuses) <= 12 {
		fmt.Fprintf(&b, ", %v", s.Statuses)
	}
	for _, c := range s.Conditions {
		fmt.Fprintf(&b, "; %s %s (%s: %s)", c.Type, c.Status, c.Reason, c.Message)
	}
	return b.String()
}

// Pods of the namespace by name, those that are terminating among them.
func (r *Rig) Pods() map[string]*corev1.Pod {
	r.Helper()
	list, err := r.Kube.CoreV1().Pods(r.NS).List(r.Context(), metav1.ListOptions{})
	if err != nil {
		r.Fatalf("list pods: %v", err)
	}
	out := map[string]*corev1.Pod{}
	for i := range list.Items {
		out[list.Items[i].Name] = &list.Items[i]
	}
	return out
}

// WaitPod waits until there is a pod of that name, and missing returns "".
func (r *Rig) WaitPod(name, what string, missing func(*corev1.Pod) string) *corev1.Pod {
	r.Helper()
	var p *corev1.Pod
	r.Eventually("pod "+name+": "+what, func(ctx context.Context) error {
		var err error
		if p, err = r.Kube.CoreV1().Pods(r.NS).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		if m := missing(p); m != "" {
			return fmt.Errorf("%s; %s", m, PodLine(p))
		}
		return nil
	})
	return p
}
