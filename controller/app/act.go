package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

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
	"tkestack.io/tapp/plan/manifest"
)

// noVersion is the resourceVersion of an apply that only creates: no object can
// have it, since the API server itself stored something earlier. On an object that
// exists, the apply is a conflict, and touches nothing.
const noVersion = "1"

// refused is the outcome of a write that the API server does not take; the view says why.
const refused = "refused"

// act carries out one action, and brings the view up to date. What was refused is an
// error of the write, but not one of the sync, until its end: other children go on.
func (c *Controller) act(ctx context.Context, v *view, o *object, a plan.Action, errs *write.Failures) error {
	logger := klog.FromContext(ctx)
	err := write.StaleOr(c.write(ctx, v, o, a))
	if apierrors.IsAlreadyExists(err) {
		err = fmt.Errorf("%w: %s", write.ErrStale, err.Error())
	}
	outcome := write.Outcome(ctx, err)
	var failure error
	switch {
	case outcome == write.Done:
		logger.V(3).Info("Done", "op", a.Op, "child", a.Child, "why", a.Why)
	case outcome == write.Stale:
		logger.V(3).Info("Came too late", "op", a.Op, "child", a.Child, "err", err)
		if failure = c.look(ctx, v, a.Child); failure != nil {
			err = failure
		}
	case write.IsTerminating(err), write.IsTransient(err), outcome == write.Interrupted:
		failure, outcome = err, write.Failed // where the namespace is being deleted, the App is about to go
	default:
		v.refused[a.Child] = write.Words(err)
		outcome = refused
	}
	if failure != nil {
		errs.Add(fmt.Sprintf("%s %s", verbs[a.Op], a.Child), failure.Error(), failure)
	}
	c.Metrics.actions.WithLabelValues(string(a.Op), string(a.Child.Kind), outcome).Inc()
	return err
}

func (c *Controller) write(ctx context.Context, v *view, o *object, a plan.Action) error {
	access, namespace := c.access(a.Child.Kind), v.app.Namespace
	if a.Op == plan.Delete {
		options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(a.UID)}, PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}
		if err := access.remove(ctx, namespace, a.Child.Name, options); err != nil {
			return err
		}
		o.guard.Deleted(cache.Deletion{Store: storeOf(a.Child.Kind), Key: types.NamespacedName{Namespace: namespace, Name: a.Child.Name}, UID: a.UID})
		v.put(a.Child, nil)
		return nil
	}
	if has := v.get(a.Child); a.Op == plan.Adopt || a.Op == plan.Correct && has != nil && metav1.GetControllerOf(has) == nil {
		if err := write.MayAdopt(appv1.Kind, v.app.UID, func() (*appv1.App, error) {
			return c.Apps.Apps(namespace).Get(ctx, v.app.Name, metav1.GetOptions{})
		}); err != nil {
			return err
		}
	}
	if a.Op == plan.Correct {
		v.corrected[a.Child] = true
		corrected, err := access.patch(ctx, namespace, a.Child.Name, a.Patch, metav1.PatchOptions{FieldManager: appv1.Component})
		if err != nil {
			return err
		}
		o.guard.Wrote(storeOf(a.Child.Kind), corrected.GetResourceVersion())
		if manifest.HasStrays(a.Manifest, corrected) { // somebody puts them there again at once
			o.overrule(a.Child, manifest.Differences(a.Manifest, corrected))
		}
		v.put(a.Child, corrected)
		delete(v.refused, a.Child)
		return nil
	}
	rendered, err := manifestFor(a)
	if err != nil {
		return fmt.Errorf("rendering the manifest: %w", err)
	}
	applied, err := access.apply(ctx, namespace, a.Child.Name, rendered, metav1.PatchOptions{FieldManager: appv1.Component, Force: ptr.To(true)})
	if err != nil {
		return err
	}
	o.guard.Wrote(storeOf(a.Child.Kind), applied.GetResourceVersion())
	o.overrule(a.Child, manifest.Differences(a.Manifest, applied))
	v.put(a.Child, applied)
	return nil
}

// manifestFor an action, conditional on what was observed.
func manifestFor(a plan.Action) ([]byte, error) {
	made := runtime.DeepCopyJSON(a.Manifest)
	metadata, ok := made["metadata"].(map[string]any)
	if !ok {
		return nil, errors.New("it has no metadata")
	}
	metadata["resourceVersion"] = noVersion
	if a.Op != plan.Create {
		metadata["uid"], metadata["resourceVersion"] = string(a.UID), a.Version
	}
	return json.Marshal(made)
}

var verbs = map[plan.Op]string{plan.Create: "create", plan.Apply: "apply", plan.Adopt: "adopt", plan.Correct: "correct", plan.Delete: "delete"}
