package backup

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// hubOptions say what is taken of a hub beside its AppSets.
type hubOptions struct {
	// clusters and charts are the namespaces of registrations and tombstones, and of the
	// archives of charts.
	clusters, charts string
	// whole: registrations and tombstones, too. credentials: with what registers clusters.
	whole, credentials bool
}

// hub adds what AppSets need that is in other namespaces: the archives of their charts, and
// for a backup of the whole hub its registrations and tombstones.
func (c *collection) hub(ctx context.Context, o hubOptions) error {
	if !c.isHub {
		return nil
	}
	if err := c.note(ctx); err != nil {
		return err
	}
	if o.whole || c.hasCharts() {
		if err := c.add(ctx, secrets, o.charts, v1beta1.LabelChart); err != nil {
			return err
		}
	}
	if !o.whole {
		return nil
	}
	if err := c.add(ctx, configMaps, o.clusters, v1beta1.LabelTombstone); err != nil {
		return err
	}
	return c.registrations(ctx, o)
}

// registrations hold the credentials of clusters.
func (c *collection) registrations(ctx context.Context, o hubOptions) error {
	before := len(c.out)
	owned := v1beta1.LabelOwner + "=" + v1beta1.OwnerLegacy
	for _, of := range []struct {
		resource schema.GroupVersionResource
		label    string
	}{{secrets, owned}, {secrets, v1beta1.LabelRuntime + "=true"}, {configMaps, owned}} {
		if err := c.add(ctx, of.resource, o.clusters, of.label); err != nil {
			return err
		}
	}
	number := len(c.out) - before
	switch {
	case number == 0:
	case o.credentials:
		c.warn("the backup has the credentials of %d clusters: keep it as you keep them", number)
	default:
		c.out = c.out[:before]
		c.warn("the registrations of %d clusters are left out, since they have credentials: -f FILE writes them into a file that only you can read, and --registrations has them here, too", number)
	}
	return nil
}

// add the objects of a namespace that have a label, each once.
func (c *collection) add(ctx context.Context, of schema.GroupVersionResource, namespace, label string) error {
	found, err := c.list(ctx, of, namespace, label)
	switch {
	case apierrors.IsForbidden(err):
		c.warn("%s of namespace %s with the label %s are left out: you may not list them", of.Resource, namespace, label)
		return nil
	case err != nil:
		return err
	}
	for _, u := range found {
		if uid := string(u.GetUID()); u.GetDeletionTimestamp() == nil && !c.taken[uid] {
			c.taken[uid] = true
			c.out = append(c.out, stamp(u, ""))
		}
	}
	return nil
}

// note in the documents of AppSets which hub they are of: parts are marked with its UID, if it
// was given no other id.
func (c *collection) note(ctx context.Context) error {
	uid, err := c.uid(ctx)
	if err != nil || uid == "" {
		return err
	}
	for _, u := range c.out {
		if of, _ := classOf(u); of.resource == appSets {
			notes := u.GetAnnotations()
			notes[annotationHub] = uid
			u.SetAnnotations(notes)
		}
	}
	return nil
}

// uid of the cluster; empty: it may not be asked for.
func (c *Cluster) uid(ctx context.Context) (string, error) {
	system, err := c.Objects.Resource(spaces).Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", err
	}
	return string(system.GetUID()), nil
}

// hasCharts says whether an AppSet of the backup has a chart.
func (c *collection) hasCharts() bool {
	for _, u := range c.owners {
		if of, _ := classOf(u); of.resource == appSets && hasField(u.Object, "chart") {
			return true
		}
	}
	return false
}

// hasField says whether a field of the name is anywhere in the podSpec or in a podSet.
func hasField(object map[string]any, field string) bool {
	if _, found, _ := unstructured.NestedFieldNoCopy(object, "spec", "podSpec", field); found {
		return true
	}
	clusters, _, _ := unstructured.NestedSlice(object, "spec", "clusterTopology", "clusters")
	for _, cluster := range clusters {
		fields, _ := cluster.(map[string]any)
		podSets, _, _ := unstructured.NestedSlice(fields, "podSets")
		for _, podSet := range podSets {
			if of, _ := podSet.(map[string]any); of[field] != nil {
				return true
			}
		}
	}
	return false
}
