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

// sight is what a write or a live read showed of a part, and the cache of its cluster may
// lack.
type sight struct {
	part *v1beta1.AdvDeployment // nil: there is none, although
	gone types.UID              // the cache may still show this one
	// deleted is true when the deletion of part was asked for.
	deleted bool
	at      time.Time
}

// current returns a cluster with the part that a write or live read showed, until the cache
// has that too. behind: the cache has lacked it for longer than patience, and the part is to
// be read live. (The cache never has a part without our label.) It is read only in clusters
// that seem to answer, and not right after a sync that waited in vain: what is written to other
// clusters waits for the timeout of one request, and not of one request after the other. The
// clusters that are not read are not certain.
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
		behind = cluster.State == v1beta1.ClusterReady && c.Clock.Since(o.waited) >= patience
		cluster.Certain = cluster.Certain && behind
		return cluster, behind
	}
	if known.deleted && known.part.DeletionTimestamp == nil {
		cluster.Part = known.part.DeepCopy()
		cluster.Part.DeletionTimestamp = new(metav1.NewTime(known.at))
	}
	return cluster, false
}

// isSeen says whether the cache has the same version of the part, or a later one.
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

// readBehind reads live, concurrently, the parts that caches have lacked for too long. Clusters
// that do not answer delay the others by the timeout of one request. In this sync nothing else
// is asked of them, and they are not read again for a while.
func (c *Controller) readBehind(ctx context.Context, v *view, o *object, clusters []string) {
	read := c.readAll(ctx, v.key, clusters)
	now := c.Clock.Now()
	for i, name := range clusters {
		if err := read[i].err; err != nil {
			klog.FromContext(ctx).V(2).Info("A part cannot be read", "cluster", name, "reason", err.Error())
			o.waited, v.unread[name] = now, true
			v.markStale(name)
			continue
		}
		known := o.sights[name]
		expected := known.gone
		if known.part != nil {
			expected = known.part.UID
		}
		o.found(name, expected, read[i].part, now)
		v.put(name, read[i].part)
	}
}

// reading is the result of a live read. Neither a part nor an error: there is no part.
type reading struct {
	part *v1beta1.AdvDeployment
	err  error
}

// readAll reads the parts of clusters live and concurrently. The results are in the order of
// the clusters.
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
