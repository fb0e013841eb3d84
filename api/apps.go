package api

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	appv1 "tkestack.io/tapp/crd/app/v1"
	"tkestack.io/tapp/crd/workload/v1beta1"
)

func appAccess(verb, namespace, name string) Access {
	return Access{Verb: verb, Group: appv1.GroupName, Resource: "apps", Namespace: namespace, Name: name}
}

func (a *API) listApps(q *request) error {
	return a.listKind(q, kindList{resource: apps, access: appAccess("list", q.namespace, ""), item: func(o any) (any, bool) {
		app, ok := o.(*appv1.App)
		if !ok {
			return nil, false
		}
		return summarizeApp(app), true
	}})
}

func summarizeApp(stored *appv1.App) App {
	d := stored.DeepCopy()
	appv1.Default(d)
	t := &d.Spec.DeploymentTemplate
	out := App{
		Summary: Summary{Namespace: d.Namespace, Name: d.Name, UID: string(d.UID), Created: d.CreationTimestamp, Generation: d.Generation, ObservedGeneration: d.Status.ObservedGeneration},
		Image:   t.Image, Deployment: t.Name, Service: d.Spec.ServiceTemplate.Name,
	}
	if t.Name != "" && t.Replicas != nil {
		out.Replicas = *t.Replicas
	}
	if s := d.Status.DeploymentStatus; s != nil {
		out.Ready = s.ReadyReplicas
	}
	out.judge(d.DeletionTimestamp, d.Status.Conditions)
	return out
}

// judge says in one word how an object with kstatus' conditions is, and what needs a human.
func (s *Summary) judge(deleted *metav1.Time, conditions []metav1.Condition) {
	stalled, ready := meta.FindStatusCondition(conditions, appv1.ConditionStalled), meta.FindStatusCondition(conditions, appv1.ConditionReady)
	from := ready
	s.State = StateProgressing
	switch {
	case deleted != nil:
		s.State, s.Since = StateDeleting, deleted
	case s.ObservedGeneration < s.Generation:
		s.State = StateUnobserved
		return
	case isTrue(stalled):
		s.State, from = StateStalled, stalled
	case isTrue(ready):
		s.State = StateReady
	}
	if from != nil {
		s.Reason, s.Message, s.Since = from.Reason, from.Message, &from.LastTransitionTime
	}
	if s.State == StateStalled {
		severity := SeverityStalled
		switch s.Reason {
		case v1beta1.ReasonHalted, v1beta1.ReasonRolledBack:
			severity = SeverityHalted
		case v1beta1.ReasonNodeLost:
			severity = SeverityLost
		}
		s.Attention = append(s.Attention, Attention{Severity: severity, Reason: s.Reason, Message: s.Message, Since: s.Since})
	}
}

func (a *API) getApp(q *request) error {
	namespace, name := q.namespace, q.name
	v, err := q.granted(func() error { return a.may(q, appAccess("get", namespace, name)) })
	if err != nil {
		return err
	}
	about := func(_ resource, n toolscache.ObjectName) bool { return n.Namespace == namespace && n.Name == name }
	t, release, err := a.topics.acquire("app/"+namespace+"/"+name, about, func(_ context.Context, t *topic, before *shown) (*shown, time.Duration, error) {
		store, err := t.feed(apps, namespace)
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
		d := AppDetail{App: summarizeApp(app)}
		d.Commands = []Hint{
			{"Show it with its events", fmt.Sprintf("kubectl describe apps.%s %s -n %s", appv1.GroupName, name, namespace)},
		}
		if d.Deployment != "" {
			d.Commands = append(d.Commands, Hint{"Follow its Deployment", fmt.Sprintf("kubectl rollout status deployment/%s -n %s", d.Deployment, namespace)})
		}
		if d.Object, err = manifest(app, appv1.SchemeGroupVersion.String(), appv1.Kind); err != nil {
			return nil, 0, err
		}
		s, err := newObject(d, before)
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
