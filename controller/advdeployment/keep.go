package advdeployment

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"

	"tkestack.io/tapp/controller/cache"
	"tkestack.io/tapp/controller/loop"
	"tkestack.io/tapp/controller/revisions"
	"tkestack.io/tapp/crd/client"
	"tkestack.io/tapp/crd/workload/v1beta1"
	plan "tkestack.io/tapp/plan/advdeployment"
)

// storeRevisions is the store of revisions that the guard of an AdvDeployment waits for.
const storeRevisions = "revisions"

// watchRollouts makes the caches of what rollouts remember, and of Confirmations.
func (c *Controller) watchRollouts() error {
	var err error
	all := c.Watching.Apps.ControllerRevisions(c.Namespace)
	if c.revisions, err = cache.NewInformer(cache.Source{
		Client: c.Watching.Apps, Label: v1beta1.LabelAdvDeploymentUID, Index: toolscache.Indexers{byOwner: indexRevision},
		Lists:   func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return all.List(ctx, o) },
		Watches: all.Watch,
	}, &appsv1.ControllerRevision{}, cache.Trim); err != nil {
		return err
	}
	if c.confirmations, err = client.NewConfirmationInformer(c.Watching.Confirmations, c.Namespace, cache.Trim); err != nil {
		return err
	}
	if err := c.confirmations.AddIndexers(toolscache.Indexers{byOwner: indexConfirmation}); err != nil {
		return err
	}
	c.Informers = append(c.Informers, c.revisions, c.confirmations)
	c.observer.Stores[storeRevisions] = c.revisions.GetStore()
	return errors.Join(
		cache.Handle(c.revisions, func(n toolscache.ObjectName) {
			if name, ok := strings.CutSuffix(n.Name, v1beta1.LoneSuffix+v1beta1.RecordSuffix); ok {
				c.enqueueKnown(loop.Key{Namespace: n.Namespace, Name: name})
			}
		}),
		cache.Handle(c.confirmations, func(n toolscache.ObjectName) { // its name begins with that of the AdvDeployment
			if at := strings.LastIndex(n.Name, "-"); at > 0 {
				c.enqueueKnown(loop.Key{Namespace: n.Namespace, Name: n.Name[:at]})
			}
		}),
	)
}

func indexRevision(object any) ([]string, error) {
	if r, ok := object.(*appsv1.ControllerRevision); ok {
		return []string{r.Namespace + "/" + r.Labels[v1beta1.LabelAdvDeploymentUID]}, nil
	}
	return nil, nil
}

func indexConfirmation(object any) ([]string, error) {
	if conf, ok := object.(*v1beta1.Confirmation); ok {
		return []string{conf.Namespace + "/" + conf.Spec.AppSet}, nil
	}
	return nil, nil
}

// remember puts the revisions and Confirmations of an AdvDeployment into the view, from the
// caches. The part of an AppSet has none.
func (c *Controller) remember(v *view) error {
	d := v.deployment
	if plan.IsPart(d) {
		return nil
	}
	var err error
	if v.revisions, err = c.revisions.GetTypedIndexer().ByTypedIndex(byOwner, d.Namespace+"/"+string(d.UID)); err != nil {
		return err
	}
	v.confirmations, err = c.confirmations.GetTypedIndexer().ByTypedIndex(byOwner, d.Namespace+"/"+d.Name)
	return err
}

// rememberLive is remember with revisions that are read live. Confirmations from the cache
// will do: each is newer than the gate that it names.
func (c *Controller) rememberLive(ctx context.Context, v *view) error {
	if err := c.remember(v); err != nil || plan.IsPart(v.deployment) {
		return err
	}
	list, err := c.Apps.ControllerRevisions(v.deployment.Namespace).List(ctx, metav1.ListOptions{LabelSelector: v1beta1.LabelAdvDeploymentUID + "=" + string(v.deployment.UID)})
	if err != nil {
		return fmt.Errorf("listing revisions live: %w", err)
	}
	v.revisions = nil
	for i := range list.Items {
		v.revisions = append(v.revisions, &list.Items[i])
	}
	return nil
}

// keep stores the revisions of a plan, which go before everything else. done: the plan had
// none. If the stored record has changed meanwhile, the view is outdated, and the event of
// that change starts another sync.
func (c *Controller) keep(ctx context.Context, v *view, o *object, p *plan.Plan) (done bool, _ error) {
	store := revisions.Store{Client: c.Apps, Guard: &o.guard, Cache: storeRevisions, Label: v1beta1.LabelAdvDeploymentUID}
	if p.Keep == nil {
		left, err := store.Forget(ctx, p.Obsolete, v.revisions)
		v.revisions = left
		return true, err
	}
	now, current, err := store.Keep(ctx, p.Keep, v.revisions)
	v.revisions, v.outdated = now, !current
	return false, err
}
