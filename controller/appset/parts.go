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
	"tkestack.io/tapp/process/parallel"
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
	// unread is when a live read last failed.
	unread time.Time
}

// current is a cluster with what is known of its part beside the cache, for as long as
// the cache lacks it. behind: the cache lacks it for too long, as that of a part without
// our mark does, and the part is to be read live. That is tried where the cluster seems to
// answer; of another one nothing is certain.
func (c *Controller) current(o *object, cluster plan.Cluster) (now plan.Cluster, behind bool) {
	known, ok := o.sights[cluster.Name]
	if !ok {
		return cluster, false
	}
	if known.isSeen(cluster.Part) {
		delete(o.sights, cluster.Name)
		return cluster, false
	}
	cluster.Part = known.part
	if c.Clock.Since(known.at) >= patience {
		behind = cluster.State == v1beta1.ClusterReady && c.Clock.Since(known.unread) >= patience
		cluster.Certain = cluster.Certain && behind
		return cluster, behind
	}
	if known.deleted && known.part.DeletionTimestamp == nil {
		cluster.Part = known.part.DeepCopy()
		cluster.Part.DeletionTimestamp = new(metav1.NewTime(known.at))
	}
	return cluster, false
}

// isSeen says whether the cache shows what is known, or something later.
func (s *sight) isSeen(cached *v1beta1.AdvDeployment) bool {
	switch {
	case s.part == nil:
		return cached == nil || cached.UID != s.gone
	case cached == nil:
		return s.deleted
	case s.deleted && cached.UID == s.part.UID && cached.DeletionTimestamp == nil:
		return false
	}
	return cached.UID != s.part.UID || !cache.Newer(s.part.ResourceVersion, cached.ResourceVersion)
}

// readBehind reads the parts live that caches lack for too long, side by side: clusters that
// do not answer delay the others by one request. They are left alone in this sync, and not
// asked again for a while, since each request to them would take as long.
func (c *Controller) readBehind(ctx context.Context, v *view, o *object, clusters []string) {
	read := c.readAll(ctx, v.key, clusters)
	now := c.Clock.Now()
	for i, name := range clusters {
		known := o.sights[name]
		if err := read[i].err; err != nil {
			klog.FromContext(ctx).V(2).Info("A part cannot be read", "cluster", name, "reason", err.Error())
			known.unread = now
			o.sights[name], v.unread[name] = known, true
			v.markStale(name)
			continue
		}
		expected := known.gone
		if known.part != nil {
			expected = known.part.UID
		}
		o.found(name, expected, read[i].part, now)
		v.put(name, read[i].part)
	}
}

// reading is what a live read came to. No part and no error: there is none.
type reading struct {
	part *v1beta1.AdvDeployment
	err  error
}

// readAll reads the parts of clusters live, side by side, in the order of the clusters.
func (c *Controller) readAll(ctx context.Context, key types.NamespacedName, clusters []string) []reading {
	out := make([]reading, len(clusters))
	var under parallel.Group
	for i, name := range clusters {
		under.Do(func() { out[i].part, out[i].err = c.read(ctx, key, name) })
	}
	under.Wait()
	return out
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
