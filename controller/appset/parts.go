package appset

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/controller/cache"
	"tkestack.io/tapp/crd/workload/v1beta1"
	plan "tkestack.io/tapp/plan/appset"
)

// patience is how long the cache of a cluster may lack what was written to it, before the
// part is read live.
const patience = 5 * time.Second

// sight is what is known of a part beside its cluster's cache: what a write resulted in,
// or a live read showed.
type sight struct {
	part *v1beta1.AdvDeployment // nil: there is none, although
	gone types.UID              // the cache may still show this one
	// deleted is true when the deletion of part was asked for.
	deleted bool
	at      time.Time
}

// current is a cluster with what is known of its part beside the cache, for as long as
// the cache lacks it. What the cache lacks for too long, such as a part without our mark,
// is read live.
func (c *Controller) current(ctx context.Context, key types.NamespacedName, o *object, cluster plan.Cluster) plan.Cluster {
	known, ok := o.sights[cluster.Name]
	if !ok {
		return cluster
	}
	if known.part == nil {
		return c.absent(ctx, key, o, cluster, known)
	}
	cached := cluster.Part
	seen := cached != nil && (cached.UID != known.part.UID || !cache.Newer(known.part.ResourceVersion, cached.ResourceVersion))
	if seen && known.deleted && cached.UID == known.part.UID && cached.DeletionTimestamp == nil {
		seen = false // the deletion is not seen
	}
	if seen || cached == nil && known.deleted {
		delete(o.sights, cluster.Name)
		return cluster
	}
	if c.Clock.Since(known.at) >= patience {
		part, err := c.read(ctx, key, cluster.Name)
		if err != nil {
			klog.FromContext(ctx).V(2).Info("A part cannot be read", "cluster", cluster.Name, "reason", err.Error())
			cluster.Part, cluster.Certain = known.part, false
			return cluster
		}
		o.found(cluster.Name, known.part.UID, part, c.Clock.Now())
		cluster.Part = part
		return cluster
	}
	cluster.Part = known.part
	if known.deleted && known.part.DeletionTimestamp == nil {
		cluster.Part = known.part.DeepCopy()
		cluster.Part.DeletionTimestamp = new(metav1.NewTime(known.at))
	}
	return cluster
}

// absent is a cluster of which was found out that the part in its cache is gone.
func (c *Controller) absent(ctx context.Context, key types.NamespacedName, o *object, cluster plan.Cluster, known sight) plan.Cluster {
	if cluster.Part == nil || cluster.Part.UID != known.gone {
		delete(o.sights, cluster.Name)
		return cluster
	}
	if c.Clock.Since(known.at) < patience {
		cluster.Part = nil
		return cluster
	}
	part, err := c.read(ctx, key, cluster.Name)
	if err != nil {
		klog.FromContext(ctx).V(2).Info("A part cannot be read", "cluster", cluster.Name, "reason", err.Error())
		cluster.Part, cluster.Certain = nil, false
		return cluster
	}
	o.found(cluster.Name, known.gone, part, c.Clock.Now())
	cluster.Part = part
	return cluster
}

// read a part live; nil: there is none.
func (c *Controller) read(ctx context.Context, key types.NamespacedName, cluster string) (*v1beta1.AdvDeployment, error) {
	carrier, err := c.Fleet.Carrier(cluster)
	if err != nil {
		return nil, err
	}
	part, err := carrier.Observe(ctx, key.Namespace, key.Name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return part, nil
}
