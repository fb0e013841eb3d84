package advdeployment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"tkestack.io/tapp/controller/cache"
	"tkestack.io/tapp/controller/write"
	"tkestack.io/tapp/crd/workload/v1beta1"
	plan "tkestack.io/tapp/plan/advdeployment"
	"tkestack.io/tapp/plan/manifest"
)

// noVersion is the resourceVersion of an apply that may only create. No object has this
// version, so if the object exists, the apply is a conflict and changes nothing.
const noVersion = "1"

// refused is the outcome of a write that the API server refuses; the view says why.
const refused = "refused"

func compare(a, b plan.Child) int { return strings.Compare(a.String(), b.String()) }

// gone says whether the AdvDeployment has ended with its last finalizer.
func (v *view) gone() bool {
	return v.deployment.DeletionTimestamp != nil && len(v.deployment.Finalizers) == 0
}

// act carries out one action, and updates the view. A refused write is counted as an error,
// but act returns none, so that the sync goes on with the other children.
func (c *Controller) act(ctx context.Context, v *view, o *object, a plan.Action, errs *write.Failures) error {
	logger := klog.FromContext(ctx)
	err := c.write(ctx, v, o, a)
	unserved := a.Op == plan.Create && write.IsNotServed(err)
	if !unserved {
		err = write.StaleOr(err)
	}
	if apierrors.IsAlreadyExists(err) {
		err = fmt.Errorf("%w: %s", write.ErrStale, err.Error())
	}
	outcome := write.Outcome(ctx, err)
	var failure error
	switch {
	case outcome == write.Done:
		logger.V(3).Info("Done", "op", a.Op, "child", a.Child, "why", a.Why)
	case unserved:
		v.refused[a.Child] = fmt.Sprintf("it does not serve %s: install the CRD there", resources[a.Child.Kind].GroupResource())
		outcome = refused
	case outcome == write.Stale && a.Op == plan.Finalize:
		failure = err // the event of what came before is about to tell
	case outcome == write.Stale:
		logger.V(3).Info("Came too late", "op", a.Op, "child", a.Child, "err", err)
		if failure = c.look(ctx, v, a.Child); failure != nil {
			err = failure
		}
	case write.IsTerminating(err), write.IsTransient(err), outcome == write.Interrupted, a.Op == plan.Finalize:
		failure, outcome = err, write.Failed // where the namespace is being deleted, the AdvDeployment is about to go
	default:
		v.refused[a.Child] = write.Words(err)
		outcome = refused
	}
	if failure != nil {
		errs.Add(strings.TrimSpace(fmt.Sprintf("%s %s", verbs[a.Op], named(a.Child))), failure.Error(), failure)
	}
	c.Metrics.actions.WithLabelValues(string(a.Op), string(a.Child.Kind), outcome).Inc()
	return err
}

// named is a child in words; the AdvDeployment itself has no name there.
func named(child plan.Child) string {
	if child == (plan.Child{}) {
		return ""
	}
	return child.String()
}

func (c *Controller) write(ctx context.Context, v *view, o *object, a plan.Action) error {
	children, namespace := c.client(a.Child.Kind, v.deployment.Namespace), v.deployment.Namespace
	switch a.Op {
	case plan.Finalize:
		return c.finalize(ctx, v, o, a)
	case plan.Delete:
		// The garbage collector may have set it free since it was seen.
		options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(a.UID), ResourceVersion: ptr.To(a.Version)}, PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)}
		if err := children.Delete(ctx, a.Child.Name, options); err != nil {
			return err
		}
		o.guard.Deleted(cache.Deletion{Store: string(a.Child.Kind), Key: types.NamespacedName{Namespace: namespace, Name: a.Child.Name}, UID: a.UID})
		return c.look(ctx, v, a.Child)
	case plan.Adopt:
		if err := write.MayAdopt(v1beta1.KindAdvDeployment, v.deployment.UID, func() (*v1beta1.AdvDeployment, error) {
			return c.AdvDeployments.AdvDeployments(namespace).Get(ctx, v.deployment.Name, metav1.GetOptions{})
		}); err != nil {
			return err
		}
	case plan.Correct:
		v.corrected[a.Child] = true
		corrected, err := children.Patch(ctx, a.Child.Name, types.JSONPatchType, a.Patch, metav1.PatchOptions{FieldManager: v1beta1.Component})
		if err != nil {
			return err
		}
		c.wrote(v, o, a, corrected, manifest.HasStrays(a.Manifest, corrected)) // somebody puts them there again at once
		delete(v.refused, a.Child)
		return nil
	}
	rendered, err := manifestFor(a)
	if err != nil {
		return fmt.Errorf("rendering the manifest: %w", err)
	}
	applied, err := children.Patch(ctx, a.Child.Name, types.ApplyPatchType, rendered, metav1.PatchOptions{FieldManager: v1beta1.Component, Force: ptr.To(true)})
	if a.Op == plan.Apply && a.Child.Kind == plan.TApp && apierrors.IsInvalid(err) {
		applied, err = children.Patch(ctx, a.Child.Name, types.JSONPatchType, a.InPlaceOf(), metav1.PatchOptions{FieldManager: v1beta1.Component})
	}
	if err != nil {
		return err
	}
	c.wrote(v, o, a, applied, true)
	return nil
}

// wrote updates the view with a child that was written. If the child still differs, the
// cluster's admission makes the differences, and they are remembered.
func (c *Controller) wrote(v *view, o *object, a plan.Action, now *unstructured.Unstructured, overruled bool) {
	o.guard.Wrote(string(a.Child.Kind), now.GetResourceVersion())
	if overruled {
		o.overrule(a.Child, manifest.Differences(a.Manifest, now))
	}
	markReplicas(now)
	v.put(a.Child, now)
}

// finalize sets the finalizers of the AdvDeployment in the version that was observed.
func (c *Controller) finalize(ctx context.Context, v *view, o *object, a plan.Action) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": a.UID, "resourceVersion": a.Version, "finalizers": a.Finalizers,
	}})
	if err != nil {
		return fmt.Errorf("rendering the patch: %w", err)
	}
	now, err := c.AdvDeployments.AdvDeployments(v.deployment.Namespace).Patch(ctx, v.deployment.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: v1beta1.Component})
	if err != nil {
		return err
	}
	o.guard.Wrote(storeOwn, now.ResourceVersion)
	v.deployment = now
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

var verbs = map[plan.Op]string{
	plan.Finalize: "set the finalizers", plan.Create: "create", plan.Apply: "apply", plan.Adopt: "adopt", plan.Correct: "correct", plan.Delete: "delete",
}
