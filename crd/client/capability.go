package client

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

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
