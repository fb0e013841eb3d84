package tapp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

const discoverAgain = time.Second

// discover asks what the cluster can do, which the planner goes by, until there is
// an answer. It is asked at every term: a cluster may have been upgraded.
func (c *Controller) discover(ctx context.Context) bool {
	for {
		resize, err := c.hasResize(ctx)
		if err == nil {
			c.Policy.Resize = resize
			klog.FromContext(ctx).V(2).Info("Asked what the cluster can do", "resizePods", resize)
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		klog.FromContext(ctx).Error(err, "Cannot tell what the cluster can do", "retryAfter", discoverAgain)
		select {
		case <-ctx.Done():
			return false
		case <-c.Clock.After(discoverAgain):
		}
	}
}

// hasResize says whether pods have the subresource resize (KEP-1287).
func (c *Controller) hasResize(ctx context.Context) (bool, error) {
	var list metav1.APIResourceList
	raw, err := c.Core.RESTClient().Get().AbsPath("/api/v1").SetHeader("Accept", "application/json").DoRaw(ctx)
	if err != nil {
		return false, fmt.Errorf("listing the resources of the core API: %w", err)
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return false, fmt.Errorf("reading the resources of the core API: %w", err)
	}
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == "pods/resize" }), nil
}
