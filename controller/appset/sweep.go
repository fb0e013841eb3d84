package appset

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/crd/workload/v1beta1"
	plan "tkestack.io/tapp/plan/appset"
	"tkestack.io/tapp/plan/podset"
)

const (
	// defaultSweepAge is how old an unused archive has to be: archives are stored before the
	// parts that use them.
	defaultSweepAge = time.Hour
	// sweepsPerAge is how often in that time unused archives are looked for.
	sweepsPerAge = 6
)

// sweepCharts drops archives of charts that nothing uses, until ctx ends.
func (c *Controller) sweepCharts(ctx context.Context) {
	ticks := c.Clock.NewTicker(c.SweepAge / sweepsPerAge)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C():
			if err := c.loop.Contain(func() error { return c.sweep(ctx) }); err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "Archives of charts that nothing uses could not be dropped")
			}
		}
	}
}

// sweep deletes unused archives on the hub and in all clusters whose parts are known.
func (c *Controller) sweep(ctx context.Context) error {
	used := map[string]bool{}
	here := map[string]map[string]bool{}
	for _, key := range c.parts.all() {
		for _, p := range c.Fleet.Parts(key.Namespace, key.Name) {
			for _, digest := range plan.Digests(p.Read()) {
				used[digest] = true
				if here[p.Cluster] == nil {
					here[p.Cluster] = map[string]bool{}
				}
				here[p.Cluster][digest] = true
			}
		}
	}
	for _, m := range c.Fleet.Members() {
		if !m.Fresh {
			continue
		}
		if err := c.sweepCluster(ctx, m.Name, here[m.Name]); err != nil {
			klog.FromContext(ctx).V(2).Info("Archives of charts are not swept", "cluster", m.Name, "reason", err.Error())
		}
	}
	return c.sweepHub(ctx, used)
}

func (c *Controller) sweepCluster(ctx context.Context, cluster string, used map[string]bool) error {
	carrier, err := c.Fleet.Carrier(cluster)
	if err != nil {
		return err
	}
	all, err := carrier.Charts(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		digest := podset.DigestIn(&corev1.LocalObjectReference{Name: all[i].Name})
		if used[digest] || !c.isOld(&all[i]) || c.charts.has(cluster, digest, c.Clock.Now()) {
			continue
		}
		if err := carrier.DropChart(ctx, &all[i]); err != nil && !apierrors.IsConflict(err) { // a conflict: it is used again
			return err
		}
	}
	return nil
}

// isOld says that an archive was neither stored nor kept for another part lately.
func (c *Controller) isOld(o metav1.Object) bool {
	since := o.GetCreationTimestamp().Time
	if kept, err := time.Parse(time.RFC3339, o.GetAnnotations()[v1beta1.AnnotationChartKept]); err == nil {
		since = kept
	}
	return c.Clock.Now().Sub(since) > c.SweepAge
}

// sweepHub deletes archives that neither a part nor an AppSet uses, nor a revision of one: a
// rollout that fails, or is undone, returns to a chart that no part has any more.
func (c *Controller) sweepHub(ctx context.Context, used map[string]bool) error {
	c.charts.mu.Lock()
	defer c.charts.mu.Unlock()
	if err := c.listCharts(ctx); err != nil {
		return err
	}
	for _, o := range c.appSets.GetStore().List() {
		raw, places := plan.Charts(o.(*v1beta1.AppSet))
		for digest := range raw {
			used[digest] = true
		}
		for _, place := range places {
			used[c.charts.places[place.Place()]] = true
		}
	}
	for _, o := range c.revisions.GetStore().List() {
		if history := podset.HistoryIn(o.(*appsv1.ControllerRevision)); history != nil {
			for _, digest := range history.Digests() {
				used[digest] = true
			}
		}
	}
	list, err := c.ChartHeads.List(ctx, metav1.ListOptions{LabelSelector: v1beta1.LabelChart + "," + v1beta1.LabelFleetID + "=" + c.FleetID()})
	if err != nil {
		return err
	}
	for i := range list.Items {
		s := &list.Items[i]
		digest := podset.DigestIn(&corev1.LocalObjectReference{Name: s.Name})
		if used[digest] || !c.isOld(s) || c.Clock.Now().Sub(c.charts.stored[digest]) < c.SweepAge {
			continue
		}
		if err := c.Charts.Delete(ctx, s.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &s.UID}}); err != nil {
			return err
		}
		delete(c.charts.stored, digest)
		for place, is := range c.charts.places {
			if is == digest {
				delete(c.charts.places, place)
			}
		}
	}
	return nil
}
