package appset

import (
	"cmp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"

	"tkestack.io/tapp/controller/revisions"
	"tkestack.io/tapp/crd/workload/v1beta1"
)

// kept is the store of the revisions of an AppSet.
func (c *Controller) kept(o *object) revisions.Store {
	return revisions.Store{Client: c.Apps, Guard: &o.guard, Cache: storeRevisions, Label: v1beta1.LabelAppSetUID}
}

// revisionsOf an AppSet, as the cache has them, in a fixed order.
func (c *Controller) revisionsOf(a *v1beta1.AppSet) []*appsv1.ControllerRevision {
	found, err := c.revisions.GetTypedIndexer().ByTypedIndex(byAppSet, a.Namespace+"/"+string(a.UID))
	if err != nil {
		return nil // New has added this index
	}
	slices.SortFunc(found, func(a, b *appsv1.ControllerRevision) int { return cmp.Compare(a.Name, b.Name) })
	return found
}

// confirmationsOf an AppSet, in a fixed order.
func (c *Controller) confirmationsOf(a *v1beta1.AppSet) []*v1beta1.Confirmation {
	found, err := c.confirmations.GetTypedIndexer().ByTypedIndex(byAppSet, a.Namespace+"/"+a.Name)
	if err != nil {
		return nil // New has added this index
	}
	slices.SortFunc(found, func(a, b *v1beta1.Confirmation) int { return cmp.Compare(a.Name, b.Name) })
	return found
}

func indexByAppSetUID(object any) ([]string, error) {
	if r, ok := object.(*appsv1.ControllerRevision); ok {
		return []string{r.Namespace + "/" + r.Labels[v1beta1.LabelAppSetUID]}, nil
	}
	return nil, nil
}

func indexByAppSet(object any) ([]string, error) {
	if conf, ok := object.(*v1beta1.Confirmation); ok {
		return []string{conf.Namespace + "/" + conf.Spec.AppSet}, nil
	}
	return nil, nil
}
