package tapp

import (
	"context"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/controller/loop"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// listPage is how many objects are listed at a time where most of them are not needed:
// as many as kubectl asks for.
const listPage = 500

// view is what the planner sees of one TApp. Its objects are shared with the
// caches: nobody may write to them.
type view struct {
	tapp   *tappv1.TApp
	pods   []*corev1.Pod
	claims []*corev1.PersistentVolumeClaim
	// revisions may lack their data.
	revisions []*appsv1.ControllerRevision
}

// cached view of a TApp.
func (c *Controller) cached(t *tappv1.TApp) (*view, error) {
	pods, err := c.pods.GetTypedIndexer().ByTypedIndex(byStem, t.Namespace+"/"+t.Name)
	if err != nil {
		return nil, fmt.Errorf("reading the cache of pods: %w", err)
	}
	v := &view{tapp: t, pods: pods}
	for i := range t.Spec.VolumeClaimTemplates {
		claims, err := c.claims.GetTypedIndexer().ByTypedIndex(byStem, t.Namespace+"/"+claimStem(t, i))
		if err != nil {
			return nil, fmt.Errorf("reading the cache of claims: %w", err)
		}
		v.claims = append(v.claims, claims...)
	}
	if v.revisions, err = c.revisions.GetTypedIndexer().ByTypedIndex(byTApp, t.Namespace+"/"+t.Name); err != nil {
		return nil, fmt.Errorf("reading the cache of revisions: %w", err)
	}
	return v, nil
}

// claimStem is the name of the claims of a template without the instance id.
func claimStem(t *tappv1.TApp, template int) string {
	return t.Spec.VolumeClaimTemplates[template].Name + "-" + t.Name
}

// live view of a TApp; nil if it does not exist any more.
func (c *Controller) live(ctx context.Context, k loop.Key, uid types.UID) (*view, error) {
	t, err := c.TApps.TApps(k.Namespace).Get(ctx, k.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || err == nil && t.UID != uid:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the TApp live: %w", err)
	}
	v := &view{tapp: t}
	if v.pods, err = c.livePods(ctx, k); err != nil {
		return nil, err
	}
	revisions, err := c.Apps.ControllerRevisions(k.Namespace).List(ctx, metav1.ListOptions{LabelSelector: tappv1.LabelTApp + "=" + k.Name})
	if err != nil {
		return nil, fmt.Errorf("listing revisions live: %w", err)
	}
	for i := range revisions.Items {
		v.revisions = append(v.revisions, &revisions.Items[i])
	}
	if len(t.Spec.VolumeClaimTemplates) == 0 {
		return v, nil
	}
	claims, err := c.Core.PersistentVolumeClaims(k.Namespace).List(ctx, metav1.ListOptions{LabelSelector: tappv1.LabelInstanceID})
	if err != nil {
		return nil, fmt.Errorf("listing claims live: %w", err)
	}
	for i := range claims.Items {
		for n := range t.Spec.VolumeClaimTemplates {
			if s, ok := stem(claims.Items[i].Name); ok && s == claimStem(t, n) {
				v.claims = append(v.claims, &claims.Items[i])
			}
		}
	}
	return v, nil
}

// livePods of a TApp. The instances of all TApps in the namespace come, of which few may be
// this one's: a page of them is held at a time.
func (c *Controller) livePods(ctx context.Context, k loop.Key) ([]*corev1.Pod, error) {
	options := metav1.ListOptions{LabelSelector: tappv1.LabelInstanceID, Limit: listPage}
	var out []*corev1.Pod
	for {
		page, err := c.Core.Pods(k.Namespace).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("listing pods live: %w", err)
		}
		for _, pod := range page.Items { // a copy, so that the page can go
			if s, ok := stem(pod.Name); ok && s == k.Name {
				out = append(out, &pod)
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return out, nil
		}
	}
}

// Versions of all that the view shows.
func (v *view) Versions() map[types.UID]string {
	out := make(map[types.UID]string, 1+len(v.pods)+len(v.claims)+len(v.revisions))
	out[v.tapp.UID] = v.tapp.ResourceVersion
	for _, p := range v.pods {
		out[p.UID] = p.ResourceVersion
	}
	for _, c := range v.claims {
		out[c.UID] = c.ResourceVersion
	}
	for _, r := range v.revisions {
		out[r.UID] = r.ResourceVersion
	}
	return out
}

// number of an instance id, for sorting ids and writing them as ranges.
func number(id string) int {
	n, _ := strconv.Atoi(id)
	return n
}
