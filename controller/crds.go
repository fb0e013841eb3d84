package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

const (
	fieldManager       = "tapp-controller"
	establishedTimeout = time.Minute
)

// ensureCRDs applies the CustomResourceDefinitions of the kinds and waits until the API
// server serves them. It waits for an API server that cannot be reached.
func ensureCRDs(ctx context.Context, client dynamic.Interface, kinds []kind) error {
	return onceReachable(ctx, func(ctx context.Context) error { return applyCRDs(ctx, client, kinds) })
}

func applyCRDs(ctx context.Context, client dynamic.Interface, kinds []kind) error {
	resource := client.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	for _, k := range kinds {
		crds, err := k.crds()
		if err != nil {
			return fmt.Errorf("reading the embedded CustomResourceDefinitions: %w", err)
		}
		for _, crd := range crds {
			if err := applyCRD(ctx, resource, crd); err != nil {
				return fmt.Errorf("CustomResourceDefinition %s: %w", crd.Name, err)
			}
		}
	}
	return nil
}

func applyCRD(ctx context.Context, client dynamic.ResourceInterface, crd *apiextensionsv1.CustomResourceDefinition) error {
	data, err := applyBytes(crd)
	if err != nil {
		return err
	}
	_, err = client.Patch(ctx, crd.Name, types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: fieldManager, Force: ptr.To(true)})
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("this program may not apply it: let it (patch on customresourcedefinitions), or install it beforehand and give --create-crd=false: %w", err)
	case err != nil:
		return fmt.Errorf("applying: %w", err)
	}
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, establishedTimeout, true, func(ctx context.Context) (bool, error) {
		found, err := client.Get(ctx, crd.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return isEstablished(found)
	})
	if err != nil {
		return fmt.Errorf("waiting until it is established: %w", err)
	}
	klog.FromContext(ctx).Info("Applied CustomResourceDefinition", "name", crd.Name)
	return nil
}

// applyBytes is the object without what only the API server may say.
func applyBytes(crd *apiextensionsv1.CustomResourceDefinition) ([]byte, error) {
	object, err := kruntime.DefaultUnstructuredConverter.ToUnstructured(crd)
	if err != nil {
		return nil, err
	}
	delete(object, "status")
	unstructured.RemoveNestedField(object, "metadata", "creationTimestamp")
	return json.Marshal(object)
}

func isEstablished(object *unstructured.Unstructured) (bool, error) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := kruntime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &crd); err != nil {
		return false, err
	}
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established {
			return c.Status == apiextensionsv1.ConditionTrue, nil
		}
	}
	return false, nil
}
