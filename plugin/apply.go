package plugin

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/client-go/dynamic"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// applied is a TApp before and after a dry run of an apply.
type applied struct {
	before *tappv1.TApp // nil: it would be created
	after  *tappv1.TApp
}

// apply is a dry run of `kubectl apply` on the server, with its defaults and admission.
func (s *session) apply(ctx context.Context, u *unstructured.Unstructured, serverSide bool) (*applied, error) {
	live, after, err := dryRun(ctx, s.dynamic.Resource(tappv1.Resource()).Namespace(u.GetNamespace()), u, serverSide)
	if err != nil {
		return nil, err
	}
	out := &applied{}
	if live != nil {
		if out.before, err = typed(live); err != nil {
			return nil, err
		}
	}
	out.after, err = typed(after)
	return out, err
}

// dryRun of an apply: what is there, nil for nothing, and what it would become.
func dryRun(ctx context.Context, client dynamic.ResourceInterface, u *unstructured.Unstructured, serverSide bool) (live, after *unstructured.Unstructured, err error) {
	dryRun := []string{metav1.DryRunAll}
	live, err = client.Get(ctx, u.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		live = nil
		after, err = client.Create(ctx, u, metav1.CreateOptions{DryRun: dryRun, FieldManager: "kubectl-client-side-apply"})
	case err != nil:
	case serverSide:
		after, err = client.Apply(ctx, u.GetName(), withoutState(u), metav1.ApplyOptions{DryRun: dryRun, FieldManager: "kubectl"})
	default:
		after, err = merge(ctx, client, live, u)
	}
	if err != nil {
		return nil, nil, err
	}
	return live, after, nil
}

// merge is a client-side apply: fields that the last apply set and this one does not are
// removed; fields that others set stay.
func merge(ctx context.Context, client dynamic.ResourceInterface, live, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	current, err := json.Marshal(live)
	if err != nil {
		return nil, fmt.Errorf("reading the object: %w", err)
	}
	modified, err := json.Marshal(withoutState(u))
	if err != nil {
		return nil, fmt.Errorf("reading the manifest: %w", err)
	}
	original := []byte(live.GetAnnotations()[corev1.LastAppliedConfigAnnotation])
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(original, modified, current)
	if err != nil {
		return nil, fmt.Errorf("comparing the manifest with the object: %w", err)
	}
	if string(patch) == "{}" {
		return live, nil
	}
	return client.Patch(ctx, u.GetName(), types.MergePatchType, patch,
		metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: "kubectl-client-side-apply"})
}

// withoutState drops the fields that the API server sets, which a manifest has that was
// read from the cluster.
func withoutState(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := u.DeepCopy()
	delete(out.Object, "status")
	for _, field := range []string{"resourceVersion", "uid", "generation", "creationTimestamp", "managedFields"} {
		unstructured.RemoveNestedField(out.Object, "metadata", field)
	}
	return out
}

func typed(u *unstructured.Unstructured) (*tappv1.TApp, error) {
	out := &tappv1.TApp{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
		return nil, fmt.Errorf("reading the TApp: %w", err)
	}
	return out, nil
}
