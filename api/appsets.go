package api

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
)

func appSetAccess(verb, namespace, name string) Access {
	return Access{Verb: verb, Group: v1beta1.GroupName, Resource: "appsets", Namespace: namespace, Name: name}
}

func (a *API) listAppSets(q *request) error {
	return a.listKind(q, kindList{resource: appSets, access: appSetAccess("list", q.namespace, ""), item: func(o any) (any, bool) {
		s, ok := o.(*v1beta1.AppSet)
		if !ok {
			return nil, false
		}
		return summarizeAppSet(s), true
	}})
}

// summarizeAppSet makes an item of the list from the status.
func summarizeAppSet(s *v1beta1.AppSet) AppSet {
	sum := &s.Status.AggrStatus
	out := AppSet{
		Summary: Summary{Namespace: s.Namespace, Name: s.Name, UID: string(s.UID), Created: s.CreationTimestamp, Generation: s.Generation, ObservedGeneration: s.Status.ObservedGeneration},
		Phase:   string(sum.Status), Version: sum.Version, Desired: sum.Desired, Available: sum.Available, Unavailable: sum.UnAvailable, Unknown: sum.Unknown,
		Paused: s.Spec.UpdateStrategy.Paused, Rollout: s.Status.Rollout, Clusters: []string{},
	}
	for i := range sum.Clusters {
		out.Clusters = append(out.Clusters, sum.Clusters[i].Name)
	}
	out.judge(s)
	return out
}

// judge says in one word how the AppSet is, and what needs a human: gates that wait, what is
// stalled, and clusters that are silent.
func (s *AppSet) judge(stored *v1beta1.AppSet) {
	s.Summary.judge(stored.DeletionTimestamp, stored.Status.Conditions)
	if waits := meta.FindStatusCondition(stored.Status.Conditions, v1beta1.ConditionAwaitingConfirmation); isTrue(waits) {
		if s.State == StateProgressing {
			s.State, s.Reason, s.Message, s.Since = StateWaiting, waits.Reason, waits.Message, &waits.LastTransitionTime
		}
		gate := Attention{Severity: SeverityWaiting, Reason: v1beta1.ConditionAwaitingConfirmation, Message: waits.Message, Since: &waits.LastTransitionTime,
			Command: s.fleet("confirm")}
		if r := stored.Status.Rollout; r != nil {
			for _, stage := range r.Stages {
				if stage.Token != "" {
					gate.Stage, gate.Token = stage.Name, stage.Token
				}
			}
		}
		s.Attention = append(s.Attention, gate)
	}
	if s.State == StateProgressing && s.Paused {
		s.State = StatePaused
		s.Attention = append(s.Attention, Attention{Severity: SeverityPaused, Reason: "Paused", Message: "spec.updateStrategy.paused holds what changes pods", Since: s.Since, Command: s.fleet("resume")})
	}
	for i := range stored.Status.AggrStatus.Clusters {
		c := &stored.Status.AggrStatus.Clusters[i]
		if isQuiet(c.State) {
			continue
		}
		if s.State == StateProgressing || s.State == StateReady {
			s.State = StateUnknown
		}
		s.Attention = append(s.Attention, Attention{Severity: SeveritySilent, Reason: cmp.Or(c.Reason, string(c.State)), Message: cmp.Or(c.Message, "the cluster is "+string(c.State)),
			Since: c.AsOf, Cluster: c.Name, Command: "kubectl tapp fleet clusters"})
	}
	for i := range s.Attention {
		if s.Attention[i].Command == "" {
			s.Attention[i].Command = s.fleet("explain")
		}
	}
}

// isQuiet says whether a cluster in this state needs no human.
func isQuiet(state v1beta1.ClusterState) bool {
	return slices.Contains([]v1beta1.ClusterState{"", v1beta1.ClusterReady, v1beta1.ClusterSuspect, v1beta1.ClusterMaintaining}, state)
}

func (s *Summary) fleet(verb string) string {
	return "kubectl tapp fleet " + verb + " " + s.Name + " -n " + s.Namespace
}

func (a *API) getAppSet(q *request) error {
	return a.showAppSet(q, "appset", func(s *v1beta1.AppSet) (any, error) {
		d := AppSetDetail{AppSet: summarizeAppSet(s), ClusterStatuses: s.Status.AggrStatus.Clusters}
		d.Commands = []Hint{{"Show its stages and clusters", d.fleet("get")}, {"Tell what is left to do", d.fleet("plan")}, {"Show its history", d.fleet("history")}}
		var err error
		d.Object, err = manifest(s, v1beta1.SchemeGroupVersion.String(), v1beta1.KindAppSet)
		return d, err
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
	about := func(_ resource, n toolscache.ObjectName) bool { return n.Namespace == namespace && n.Name == name }
	t, release, err := a.topics.acquire(what+"/"+namespace+"/"+name, about, func(_ context.Context, t *topic, before *shown) (*shown, time.Duration, error) {
		store, err := t.feed(appSets, namespace)
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
		s, err := newObject(value, before)
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
	return q.writeValue(List[Cluster]{Items: clusters, Total: len(clusters)})
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
	return notFound("no AppSet that you may see is in a cluster %q", q.name)
}

func (a *API) clustersOf(q *request) ([]Cluster, error) {
	objects, v, err := a.storedAppSets(q)
	if err != nil {
		return nil, err
	}
	return gather(objects, v), nil
}

// storedAppSets are all AppSets, and which of them the caller may see.
func (a *API) storedAppSets(q *request) ([]any, visibility, error) {
	namespace := a.Namespace
	t, release, err := a.topics.acquire("stored "+string(appSets), nil, func(_ context.Context, t *topic, before *shown) (*shown, time.Duration, error) {
		store, err := t.feed(appSets, namespace)
		if err != nil {
			return nil, 0, err
		}
		var items []item
		for _, object := range store.List() {
			if s, ok := object.(*v1beta1.AppSet); ok {
				items = append(items, item{s.Namespace + "/" + s.Name, s.ResourceVersion})
			}
		}
		s, err := newList(items, nil, strings.Compare, before)
		return s, 0, err
	})
	if err != nil {
		return nil, visibility{}, err
	}
	defer release()
	if _, _, err := t.current(q.ctx()); err != nil {
		return nil, visibility{}, err
	}
	v, err := a.visible(q, t, appSetAccess("list", namespace, ""))
	if err != nil {
		return nil, visibility{}, err
	}
	store, err := t.feed(appSets, namespace)
	if err != nil {
		return nil, visibility{}, err
	}
	return store.List(), v, nil
}

// gather what the statuses say of each cluster. If several do, the latest observation counts.
func gather(objects []any, v visibility) []Cluster {
	byName := map[string]*Cluster{}
	for _, object := range objects {
		s, ok := object.(*v1beta1.AppSet)
		if !ok || v.sees != nil && !v.sees(s.Namespace+"/"+s.Name) {
			continue
		}
		for i := range s.Status.AggrStatus.Clusters {
			c := &s.Status.AggrStatus.Clusters[i]
			name := v1beta1.FoldClusterName(c.Name)
			one := byName[name]
			if one == nil {
				one = &Cluster{Name: name}
				byName[name] = one
			}
			if one.AppSets == 0 || c.AsOf == nil || one.AsOf != nil && one.AsOf.Before(c.AsOf) {
				one.State, one.Reason, one.Message, one.AsOf = string(c.State), c.Reason, c.Message, c.AsOf
			}
			one.AppSets++
			one.Desired += c.Desired
			one.Available += c.Available
		}
	}
	out := make([]Cluster, 0, len(byName))
	for _, c := range byName {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b Cluster) int { return strings.Compare(a.Name, b.Name) })
	return out
}
