package appset

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/controller/cache"
	"tkestack.io/tapp/crd/workload/v1beta1"
	plan "tkestack.io/tapp/plan/appset"
	"tkestack.io/tapp/plan/template"
)

// allTombstones of the namespaces that are looked after, in a fixed order.
func (c *Controller) allTombstones() []plan.Tombstone {
	var out []plan.Tombstone
	for _, object := range c.tombstones.GetStore().List() {
		m, ok := object.(*corev1.ConfigMap)
		if ok && (c.Namespace == "" || m.Data["namespace"] == c.Namespace) {
			out = append(out, readTombstone(m))
		}
	}
	slices.SortFunc(out, func(a, b plan.Tombstone) int { return cmp.Compare(nameOf(a), nameOf(b)) })
	return out
}

func readTombstone(m *corev1.ConfigMap) plan.Tombstone {
	since, _ := time.Parse(time.RFC3339, m.Data["since"])
	return plan.Tombstone{
		AppSet: types.NamespacedName{Namespace: m.Data["namespace"], Name: m.Data["appSet"]}, UID: types.UID(m.Data["uid"]),
		Cluster: m.Data["cluster"], ClusterUID: types.UID(m.Data["clusterUID"]), Since: since,
	}
}

// nameOf the ConfigMap of a tombstone.
func nameOf(t plan.Tombstone) string {
	return "tapp-tombstone-" + template.Digest([]byte(string(t.UID)+"/"+t.Cluster+"/"+string(t.ClusterUID)))
}

func (c *Controller) bury(ctx context.Context, o *object, t plan.Tombstone) error {
	made := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Tombstones, Name: nameOf(t), Labels: map[string]string{v1beta1.LabelTombstone: "true"}},
		Data: map[string]string{
			"namespace": t.AppSet.Namespace, "appSet": t.AppSet.Name, "uid": string(t.UID),
			"cluster": t.Cluster, "clusterUID": string(t.ClusterUID), "since": t.Since.UTC().Format(time.RFC3339),
		},
	}
	stored, err := c.ConfigMaps.ConfigMaps(c.Tombstones).Create(ctx, made, metav1.CreateOptions{FieldManager: v1beta1.Component})
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil
	case err != nil:
		return err
	}
	o.guard.Wrote(storeTombstones, stored.ResourceVersion)
	return nil
}

func (c *Controller) unbury(ctx context.Context, o *object, t plan.Tombstone) error {
	err := c.ConfigMaps.ConfigMaps(c.Tombstones).Delete(ctx, nameOf(t), metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	key := types.NamespacedName{Namespace: c.Tombstones, Name: nameOf(t)}
	if stored, ok, _ := c.tombstones.GetStore().GetByKey(key.String()); ok {
		o.guard.Deleted(cache.Deletion{Store: storeTombstones, Key: key, UID: stored.(*corev1.ConfigMap).UID})
	}
	return nil
}
