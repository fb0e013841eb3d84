package api

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"tkestack.io/tapp/api/access"
	"tkestack.io/tapp/api/describe"
	"tkestack.io/tapp/api/live"
	appv1 "tkestack.io/tapp/crd/app/v1"
)

func appAccess(verb, namespace, name string) access.Access {
	return access.Access{Verb: verb, Group: appv1.GroupName, Resource: "apps", Namespace: namespace, Name: name}
}

func (a *API) listApps(q *request) error {
	return a.listKind(q, kindList{resource: apps, access: appAccess("list", q.namespace, ""), item: func(o any) (any, bool) {
		app, ok := o.(*appv1.App)
		if !ok {
			return nil, false
		}
		return describe.App(app), true
	}})
}

func (a *API) getApp(q *request) error {
	namespace, name := q.namespace, q.name
	v, err := q.granted(func() error { return a.may(q, appAccess("get", namespace, name)) })
	if err != nil {
		return err
	}
	about := func(_ live.Resource, n toolscache.ObjectName) bool { return n.Namespace == namespace && n.Name == name }
	t, release, err := a.topics.Acquire("app/"+namespace+"/"+name, about, func(_ context.Context, t *live.Topic, before *live.Shown) (*live.Shown, time.Duration, error) {
		store, err := t.Feed(apps, namespace)
		if err != nil {
			return nil, 0, err
		}
		object, exists, err := store.GetByKey(namespace + "/" + name)
		if err != nil {
			return nil, 0, fmt.Errorf("looking for App %s/%s: %w", namespace, name, err)
		}
		app, ok := object.(*appv1.App)
		if !exists || !ok {
			return nil, 0, apierrors.NewNotFound(appv1.Resource().GroupResource(), name)
		}
		d, err := describe.AppDetail(app)
		if err != nil {
			return nil, 0, err
		}
		s, err := live.NewObject(d, before)
		return s, 0, err
	})
	if err != nil {
		return err
	}
	defer release()
	return a.show(q, t, v)
}

func (a *API) listAppEvents(q *request) error {
	if err := firstError(q.checkQuery, func() error { return a.may(q, appAccess("get", q.namespace, q.name)) }); err != nil {
		return err
	}
	app, err := a.clients.apps.Apps(q.namespace).Get(q.ctx(), q.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	return a.writeEvents(q, a.clients.core, app.UID)
}
