package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"tkestack.io/tapp/controller/cache"
	"tkestack.io/tapp/controller/write"
	appv1 "tkestack.io/tapp/crd/app/v1"
	plan "tkestack.io/tapp/plan/app"
)

// noVersion is the resourceVersion of an apply that only creates: no object can
// have it, since the API server itself stored something earlier. On an object that
// exists, the apply is a conflict, and touches nothing.
const noVersion = "1"

// outcome of an action, as metrics tell it.
type outcome string

const (
	done    outcome = "done"
	stale   outcome = "stale"   // what was observed is no more so; the view shows how it is
	refused outcome = "refused" // the API server does not take it; the view says why
	failed  outcome = "failed"
)

// act carries out one action and brings the view up to date.
func (c *Controller) act(ctx context.Context, v *view, o *object, a plan.Action) (outcome, error) {
	logger := klog.FromContext(ctx)
	out, err := c.write(ctx, v, o, a)
	switch {
	case err == nil:
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		out = failed // and the App is about to go
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err), write.IsOtherUID(err), errors.Is(err, errGone):
		logger.V(3).Info("Came too late", "op", a.Op, "child", a.Child, "err", err)
		out, err = stale, c.look(ctx, v, a.Child)
	case write.IsTransient(err):
		out = failed
	default:
		v.refused[a.Child] = words(err)
		out, err = refused, nil
	}
	if err != nil {
		err = fmt.Errorf("cannot %s %s: %w", verbs[a.Op], a.Child, err)
	}
	if out == done {
		logger.V(3).Info("Done", "op", a.Op, "child", a.Child, "why", a.Why)
	}
	c.Metrics.actions.WithLabelValues(string(a.Op), string(a.Child.Kind), string(out)).Inc()
	return out, err
}

func (c *Controller) write(ctx context.Context, v *view, o *object, a plan.Action) (outcome, error) {
	access, namespace := c.access(a.Child.Kind), v.app.Namespace
	if a.Op == plan.Delete {
		options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(a.UID)}, PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}
		if err := access.remove(ctx, namespace, a.Child.Name, options); err != nil {
			return failed, err
		}
		o.guard.Deleted(cache.Deletion{Store: storeOf(a.Child.Kind), Key: types.NamespacedName{Namespace: namespace, Name: a.Child.Name}, UID: a.UID})
		v.put(a.Child, nil)
		return done, nil
	}
	if a.Op == plan.Adopt {
		if err := c.mayAdopt(ctx, v.app); err != nil {
			return failed, err
		}
	}
	manifest, err := manifestFor(a)
	if err != nil {
		return failed, fmt.Errorf("rendering the manifest: %w", err)
	}
	applied, err := access.apply(ctx, namespace, a.Child.Name, manifest, metav1.PatchOptions{FieldManager: appv1.Component, Force: ptr.To(true)})
	if err != nil {
		return failed, err
	}
	o.guard.Wrote(storeOf(a.Child.Kind), applied.GetResourceVersion())
	o.overrule(a.Child, plan.Differences(a.Manifest, applied))
	v.put(a.Child, applied)
	return done, nil
}

// manifestFor an action, conditional on what was observed.
func manifestFor(a plan.Action) ([]byte, error) {
	manifest := runtime.DeepCopyJSON(a.Manifest)
	metadata, ok := manifest["metadata"].(map[string]any)
	if !ok {
		return nil, errors.New("it has no metadata")
	}
	metadata["resourceVersion"] = noVersion
	if a.Op != plan.Create {
		metadata["uid"], metadata["resourceVersion"] = string(a.UID), a.Version
	}
	return json.Marshal(manifest)
}

// errGone is what adoption returns for an App that is no more.
var errGone = errors.New("the App is gone, or being deleted")

// mayAdopt reads the App live: a cache that is behind could have us adopt a child
// for one that is gone already, and the garbage collector would delete it.
func (c *Controller) mayAdopt(ctx context.Context, a *appv1.App) error {
	now, err := c.Apps.Apps(a.Namespace).Get(ctx, a.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || err == nil && (now.UID != a.UID || now.DeletionTimestamp != nil):
		return errGone
	case err != nil:
		return fmt.Errorf("reading the App live: %w", err)
	}
	return nil
}

var verbs = map[plan.Op]string{plan.Create: "create", plan.Apply: "apply", plan.Adopt: "adopt", plan.Delete: "delete"}

// words of an error for people: the API server's own.
func words(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Reason != metav1.StatusReasonUnknown {
		return status.Status().Message
	}
	return err.Error()
}
