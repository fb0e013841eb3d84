package tapp

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/plan/claim"
	plan "tkestack.io/tapp/plan/tapp"
)

// readWorkloads reads the TApps of these names from the cache, and the StatefulSets live:
// they are asked for once in the life of a claim, if at all. What cannot be read is left out,
// but for StatefulSets that TApp's account may not read: those count as absent.
func (c *Controller) readWorkloads(ctx context.Context, namespace string, names []string) (map[string][]claim.Workload, error) {
	out := make(map[string][]claim.Workload, len(names))
	var errs []error
	for _, name := range names {
		known := []claim.Workload{}
		if t, err := c.lister.TApps(namespace).Get(name); err == nil {
			known = append(known, plan.MakerOf(t, c.Policy))
		}
		s, err := c.Apps.StatefulSets(namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case err == nil:
			known = append(known, claim.OfStatefulSet(s))
		case apierrors.IsForbidden(err):
			klog.FromContext(ctx).Info("Whether a claim is a StatefulSet's cannot be told", "statefulSet", klog.KRef(namespace, name), "reason", err.Error())
		case !apierrors.IsNotFound(err):
			errs = append(errs, fmt.Errorf("read StatefulSet %s to tell whose a claim is: %w", name, err))
			continue
		}
		out[name] = known
	}
	return out, errors.Join(errs...)
}
