package api

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"

	"tkestack.io/tapp/api/access"
	"tkestack.io/tapp/api/describe"
	"tkestack.io/tapp/api/live"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
	"tkestack.io/tapp/plan/view"
)

func tappAccess(verb, namespace, name string) access.Access {
	return access.Access{Verb: verb, Group: tappv1.GroupName, Resource: "tapps", Namespace: namespace, Name: name}
}

func (a *API) listTApps(q *request) error {
	return a.listKind(q, kindList{resource: tapps, access: tappAccess("list", q.namespace, ""), item: func(o any) (any, bool) {
		t, ok := o.(*tappv1.TApp)
		if !ok {
			return nil, false
		}
		return describe.TApp(t), true
	}})
}

// tappTopic is a topic about one TApp. shows makes what is shown of it.
func (a *API) tappTopic(q *request, what string, shows func(o *view.Observed, before *live.Shown) (*live.Shown, error)) (*live.Topic, func(), error) {
	namespace, name := q.namespace, q.name
	about := func(r live.Resource, n toolscache.ObjectName) bool {
		if n.Namespace != namespace {
			return false
		}
		if r == tapps {
			return n.Name == name
		}
		return r == claims || view.HasInstanceName(name, n.Name)
	}
	return a.topics.Acquire(what+"/"+namespace+"/"+name, about, func(ctx context.Context, t *live.Topic, before *live.Shown) (*live.Shown, time.Duration, error) {
		o, err := a.observe(ctx, t, namespace, name)
		if err != nil {
			return nil, 0, err
		}
		s, err := shows(o, before)
		return s, o.Plan.Wait, err
	})
}

// observe a TApp from the feeds, and plan.
func (a *API) observe(ctx context.Context, t *live.Topic, namespace, name string) (*view.Observed, error) {
	stored, errTApps := t.Feed(tapps, namespace)
	podStore, errPods := t.Feed(pods, namespace) // both at once
	if err := cmp.Or(errTApps, errPods); err != nil {
		return nil, err
	}
	object, exists, err := stored.GetByKey(namespace + "/" + name)
	if err != nil {
		return nil, fmt.Errorf("looking for TApp %s/%s: %w", namespace, name, err)
	}
	tapp, ok := object.(*tappv1.TApp)
	if !exists || !ok {
		return nil, apierrors.NewNotFound(tappv1.Resource().GroupResource(), name)
	}
	in := plan.Input{TApp: tapp, Now: time.Now(), Policy: a.policy(ctx)}
	found, err := podStore.ByIndex(byStem, namespace+"/"+name)
	if err != nil {
		return nil, fmt.Errorf("looking for pods of TApp %s/%s: %w", namespace, name, err)
	}
	for _, o := range found {
		if pod, ok := o.(*corev1.Pod); ok {
			in.Pods = append(in.Pods, pod)
		}
	}
	if len(tapp.Spec.VolumeClaimTemplates) > 0 {
		store, err := t.Feed(claims, namespace)
		if err != nil {
			return nil, err
		}
		for _, o := range store.List() {
			claim, ok := o.(*corev1.PersistentVolumeClaim)
			if ok && slices.ContainsFunc(tapp.Spec.VolumeClaimTemplates, func(c corev1.PersistentVolumeClaim) bool {
				return view.HasInstanceName(c.Name+"-"+name, claim.Name)
			}) {
				in.Claims = append(in.Claims, claim)
			}
		}
	}
	return a.withRevisions(ctx, in)
}

// withRevisions plans, and reads the revisions where the plan needs them.
func (a *API) withRevisions(ctx context.Context, in plan.Input) (*view.Observed, error) {
	o := view.Observe(in)
	if !o.Plan.NeedsRevisions {
		return o, nil
	}
	stored, err := a.clients.revisionsOf(ctx, in.TApp)
	if err != nil {
		return nil, err
	}
	for i := range stored {
		in.Revisions = append(in.Revisions, &stored[i])
	}
	in.RevisionsRead = true
	return view.Observe(in), nil
}

func (a *API) getTApp(q *request) error {
	v, err := q.granted(func() error { return a.may(q, tappAccess("get", q.namespace, q.name)) })
	if err != nil {
		return err
	}
	t, release, err := a.tappTopic(q, "tapp", func(o *view.Observed, before *live.Shown) (*live.Shown, error) {
		d, err := describe.TAppDetail(o)
		if err != nil {
			return nil, err
		}
		return live.NewObject(d, before)
	})
	if err != nil {
		return err
	}
	defer release()
	return a.show(q, t, v)
}

// firstError of the checks, which are made in their order.
func firstError(checks ...func() error) error {
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}
