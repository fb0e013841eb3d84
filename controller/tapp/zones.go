package tapp

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/crd/client"
	plan "tkestack.io/tapp/plan/tapp"
)

// zonesEvery is how often it is asked whether nodes have zones, and zonesAgain after how long
// if there was no answer within zonesTimeout.
const (
	zonesEvery   = 10 * time.Minute
	zonesAgain   = time.Minute
	zonesTimeout = 10 * time.Second
)

// followZones asks every ten minutes, until ctx ends.
func (c *Controller) followZones(ctx context.Context, after time.Duration) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.Clock.After(after):
			after = c.readZones(ctx)
		}
	}
}

// readZones asks whether every node has a zone, and returns when to ask again. Without the
// right to know it, pods are spread over nodes alone; what fails otherwise changes nothing.
func (c *Controller) readZones(ctx context.Context) time.Duration {
	asking, cancel := context.WithTimeout(ctx, zonesTimeout)
	defer cancel()
	zones, err := client.EveryNodeHasZone(asking, c.Core.RESTClient())
	switch {
	case err == nil || apierrors.IsForbidden(err):
		if was := c.zones.Swap(zones); was != zones {
			klog.FromContext(ctx).V(2).Info("New pods are spread over zones where every node has one", "zones", zones)
		}
		return zonesEvery
	case ctx.Err() == nil:
		klog.FromContext(ctx).V(1).Info("Cannot tell whether every node has a zone", "reason", err.Error(), "retryAfter", zonesAgain)
	}
	return zonesAgain
}

// policy is what the planner goes by now.
func (c *Controller) policy() plan.Policy {
	p := c.Policy
	p.Spread.Zones = c.zones.Load()
	return p
}
