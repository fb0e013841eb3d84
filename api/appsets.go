package api

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"tkestack.io/tapp/api/access"
	"tkestack.io/tapp/api/answer"
	"tkestack.io/tapp/api/describe"
	"tkestack.io/tapp/api/live"
	apiv1 "tkestack.io/tapp/api/v1"
	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
)

func appSetAccess(verb, namespace, name string) access.Access {
	return access.Access{Verb: verb, Group: v1beta1.GroupName, Resource: "appsets", Namespace: namespace, Name: name}
}

func (a *API) listAppSets(q *request) error {
	return a.listKind(q, kindList{resource: appSets, access: appSetAccess("list", q.namespace, ""), item: func(o any) (any, bool) {
		s, ok := o.(*v1beta1.AppSet)
		if !ok {
			return nil, false
		}
		return describe.AppSet(s), true
	}})
}

func (a *API) getAppSet(q *request) error {
	return a.showAppSet(q, "appset", func(s *v1beta1.AppSet) (any, error) {
		return describe.AppSetDetail(s)
	})
}

func (a *API) getRollout(q *request) error {
	return a.showAppSet(q, "rollout", func(s *v1beta1.AppSet) (any, error) {
		if s.Status.Rollout == nil {
			return v1beta1.RolloutStatus{}, nil
		}
		return s.Status.Rollout, nil
	})
}

// showAppSet shows something of one AppSet.
func (a *API) showAppSet(q *request, what string, of func(*v1beta1.AppSet) (any, error)) error {
	namespace, name := q.namespace, q.name
	v, err := q.granted(func() error { return a.may(q, appSetAccess("get", namespace, name)) })
	if err != nil {
		return err
	}
	about := func(_ live.Resource, n toolscache.ObjectName) bool { return n.Namespace == namespace && n.Name == name }
	t, release, err := a.topics.Acquire(what+"/"+namespace+"/"+name, about, func(_ context.Context, t *live.Topic, before *live.Shown) (*live.Shown, time.Duration, error) {
		store, err := t.Feed(appSets, namespace)
		if err != nil {
			return nil, 0, err
		}
		object, exists, err := store.GetByKey(namespace + "/" + name)
		if err != nil {
			return nil, 0, fmt.Errorf("looking for AppSet %s/%s: %w", namespace, name, err)
		}
		stored, ok := object.(*v1beta1.AppSet)
		if !exists || !ok {
			return nil, 0, apierrors.NewNotFound(v1beta1.AppSets().GroupResource(), name)
		}
		value, err := of(stored)
		if err != nil {
			return nil, 0, err
		}
		s, err := live.NewObject(value, before)
		return s, 0, err
	})
	if err != nil {
		return err
	}
	defer release()
	return a.show(q, t, v)
}

// appSet of the path, live.
func (a *API) appSet(q *request) (*v1beta1.AppSet, error) {
	return a.clients.appSets.AppSets(q.namespace).Get(q.ctx(), q.name, metav1.GetOptions{})
}

// groupsOf the podSets of an AppSet, by cluster and podSet.
func groupsOf(s *v1beta1.AppSet) map[string]string {
	out := map[string]string{}
	for i := range s.Spec.ClusterTopology.Clusters {
		c := &s.Spec.ClusterTopology.Clusters[i]
		for k := range c.PodSets {
			out[v1beta1.FoldClusterName(c.Name)+"/"+c.PodSets[k].Name] = podset.GroupOf(&c.PodSets[k])
		}
	}
	return out
}

func (a *API) listAppSetEvents(q *request) error {
	if err := firstError(q.checkQuery, func() error { return a.may(q, appSetAccess("get", q.namespace, q.name)) }); err != nil {
		return err
	}
	s, err := a.appSet(q)
	if err != nil {
		return err
	}
	return a.writeEvents(q, a.clients.core, s.UID)
}

// listClusters tells of clusters what the statuses of the AppSets say that the caller may
// see: registrations are Secrets, which this server does not read.
func (a *API) listClusters(q *request) error {
	if err := q.checkQuery(); err != nil {
		return err
	}
	clusters, err := a.clustersOf(q)
	if err != nil {
		return err
	}
	return q.writeValue(apiv1.List[apiv1.Cluster]{Items: clusters, Total: len(clusters)})
}

func (a *API) getCluster(q *request) error {
	if err := q.checkQuery(); err != nil {
		return err
	}
	clusters, err := a.clustersOf(q)
	if err != nil {
		return err
	}
	for i := range clusters {
		if v1beta1.FoldClusterName(clusters[i].Name) == v1beta1.FoldClusterName(q.name) {
			return q.writeValue(clusters[i])
		}
	}
	return answer.NotFound("no AppSet that you may see is in a cluster %q", q.name)
}

func (a *API) clustersOf(q *request) ([]apiv1.Cluster, error) {
	objects, v, err := a.storedAppSets(q)
	if err != nil {
		return nil, err
	}
	return describe.Clusters(objects, v.sees), nil
}

// storedAppSets are all AppSets, and which of them the caller may see.
func (a *API) storedAppSets(q *request) ([]any, visibility, error) {
	namespace := a.Namespace
	t, release, err := a.topics.Acquire("stored "+string(appSets), nil, func(_ context.Context, t *live.Topic, before *live.Shown) (*live.Shown, time.Duration, error) {
		store, err := t.Feed(appSets, namespace)
		if err != nil {
			return nil, 0, err
		}
		var items []live.Item
		for _, object := range store.List() {
			if s, ok := object.(*v1beta1.AppSet); ok {
				items = append(items, live.Item{Key: s.Namespace + "/" + s.Name, Value: s.ResourceVersion})
			}
		}
		s, err := live.NewList(items, nil, strings.Compare, before)
		return s, 0, err
	})
	if err != nil {
		return nil, visibility{}, err
	}
	defer release()
	if _, _, err := t.Current(q.ctx()); err != nil {
		return nil, visibility{}, err
	}
	v, err := a.visible(q, t, appSetAccess("list", namespace, ""))
	if err != nil {
		return nil, visibility{}, err
	}
	store, err := t.Feed(appSets, namespace)
	if err != nil {
		return nil, visibility{}, err
	}
	return store.List(), v, nil
}
