package tapp

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	"tkestack.io/tapp/crd/client"
)

const discoverAgain = time.Second

// discover asks what the cluster can do, which the planner goes by, until there is
// an answer. It is asked at every term: a cluster may have been upgraded.
func (c *Controller) discover(ctx context.Context) bool {
	for {
		resize, err := client.HasResize(ctx, c.Core.RESTClient())
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
