package client

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// HasResize says whether the pods of a cluster have the subresource resize
// (KEP-1287), on which updateStrategy.inPlaceUpdate.resources depends. core is any
// client of the core API.
func HasResize(ctx context.Context, core rest.Interface) (bool, error) {
	raw, err := core.Get().AbsPath("/api/v1").SetHeader("Accept", "application/json").DoRaw(ctx)
	if err != nil {
		return false, fmt.Errorf("listing the resources of the core API: %w", err)
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(raw, &list); err != nil {
		return false, fmt.Errorf("reading the resources of the core API: %w", err)
	}
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == "pods/resize" }), nil
}

// EveryNodeHasZone says whether each node of a cluster has the label
// topology.kubernetes.io/zone; without nodes none has. It asks for the metadata of at most
// one node without the label, and of one with it.
func EveryNodeHasZone(ctx context.Context, core rest.Interface) (bool, error) {
	without, err := anyNode(ctx, core, "!"+corev1.LabelTopologyZone)
	if err != nil || without {
		return false, err
	}
	return anyNode(ctx, core, corev1.LabelTopologyZone)
}

func anyNode(ctx context.Context, core rest.Interface, selector string) (bool, error) {
	o := metav1.ListOptions{LabelSelector: selector, Limit: 1}
	for {
		raw, err := core.Get().Resource("nodes").VersionedParams(&o, metav1.ParameterCodec).
			SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").DoRaw(ctx)
		if err != nil {
			return false, fmt.Errorf("listing nodes: %w", err)
		}
		var list metav1.PartialObjectMetadataList
		if err := json.Unmarshal(raw, &list); err != nil {
			return false, fmt.Errorf("reading a list of nodes: %w", err)
		}
		// A page may be empty although nodes follow that match.
		if o.Continue = list.Continue; len(list.Items) > 0 || o.Continue == "" {
			return len(list.Items) > 0, nil
		}
	}
}
