package api

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"

	"tkestack.io/tapp/api/answer"
	apiv1 "tkestack.io/tapp/api/v1"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/process/parallel"
)

const (
	// keepPods is for how long the pods of an AppSet in a cluster are shown without asking again.
	keepPods = 5 * time.Second
	// keptPods bounds for how many of them that is.
	keptPods = 512
	// maxMemberPods of an AppSet in one cluster are read.
	maxMemberPods = 5000
	// membersAtOnce are asked for one answer.
	membersAtOnce = 16
	// labelZone is where a cluster or a podSet says its zone.
	labelZone = "sym-available-zone"
	// labelHelmRelease is the convention of charts for the name of their release.
	labelHelmRelease = "app.kubernetes.io/instance"
)

// podReads are reads of pods in members. Callers share them, and they are kept for keepPods.
type podReads struct {
	flights singleflight.Group
	kept    *cache.LRUExpireCache
}

func newPodReads() *podReads { return &podReads{kept: cache.NewLRUExpireCache(keptPods)} }

// memberPods are those of an AppSet in one cluster.
type memberPods struct {
	items []apiv1.FleetInstance
	more  bool
}

// listFleetInstances lists the pods of an AppSet in all its clusters. The answer names the
// clusters that do not answer.
func (a *API) listFleetInstances(q *request) error {
	if err := q.checkQuery(); err != nil {
		return err
	}
	out, err := a.fleetInstances(q, q.r.URL.Query().Get("cluster"))
	if err != nil {
		return err
	}
	return q.writeFleetInstances(out)
}

// fleetInstances of the AppSet of the path, in one cluster or in all, after the filters of the query.
func (a *API) fleetInstances(q *request, only string) (*apiv1.FleetInstanceList, error) {
	what := appSetAccess("get", q.namespace, q.name)
	of := what
	of.Subresource = subresourceInstances
	if err := firstError(func() error { return a.may(q, what) }, func() error { return a.may(q, of) }); err != nil {
		return nil, err
	}
	s, err := a.appSet(q)
	if err != nil {
		return nil, err
	}
	if a.Members == nil {
		return nil, errNoMembers
	}
	var names []string
	for _, name := range clustersOfAppSet(s) {
		if only == "" || v1beta1.FoldClusterName(only) == name {
			names = append(names, name)
		}
	}
	if len(names) == 0 && only != "" {
		return nil, answer.NotFound("AppSet %s is in no cluster %q", s.Name, answer.Shorten(only))
	}
	return a.gatherInstances(q, s, names), nil
}

// clustersOfAppSet are those that it is to be in, or still is.
func clustersOfAppSet(s *v1beta1.AppSet) []string {
	var out []string
	for i := range s.Spec.ClusterTopology.Clusters {
		out = append(out, v1beta1.FoldClusterName(s.Spec.ClusterTopology.Clusters[i].Name))
	}
	for i := range s.Status.AggrStatus.Clusters {
		out = append(out, v1beta1.FoldClusterName(s.Status.AggrStatus.Clusters[i].Name))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (a *API) gatherInstances(q *request, s *v1beta1.AppSet, names []string) *apiv1.FleetInstanceList {
	out := &apiv1.FleetInstanceList{List: apiv1.List[apiv1.FleetInstance]{Items: []apiv1.FleetInstance{}}, Clusters: make([]apiv1.ClusterAnswer, len(names))}
	filter := q.instanceFilter()
	var mu sync.Mutex
	var silent []string
	var asking parallel.Group
	places := make(chan struct{}, membersAtOnce)
	for i, name := range names {
		places <- struct{}{}
		asking.Do(func() {
			defer func() { <-places }()
			pods, err := a.podsOf(q, s, name)
			told := apiv1.ClusterAnswer{Cluster: name, Truncated: pods.more}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				told.Error = answer.StatusOf(err).Message
				silent = append(silent, name)
			}
			for k := range pods.items {
				if filter(&pods.items[k]) {
					out.Items = append(out.Items, pods.items[k])
					told.Instances++
				}
			}
			out.Clusters[i] = told
		})
	}
	asking.Wait()
	slices.SortFunc(out.Items, func(a, b apiv1.FleetInstance) int { return strings.Compare(instanceKey(&a), instanceKey(&b)) })
	out.Total = len(out.Items)
	if len(silent) > 0 {
		slices.Sort(silent)
		out.Degraded = fmt.Sprintf("%d of %d clusters did not answer: %s", len(silent), len(names), strings.Join(silent[:min(len(silent), 10)], ", "))
	}
	return out
}

// instanceKey is by what instances are sorted and pages continue.
func instanceKey(i *apiv1.FleetInstance) string {
	const width = 10 // of the largest id, so that they are sorted as numbers
	return i.Cluster + "/" + i.PodSet + "/" + strings.Repeat("0", max(0, width-len(i.ID))) + i.ID + "/" + i.Name
}

// instanceFilter is what the query says of group, zone and logical data center.
func (q *request) instanceFilter() func(*apiv1.FleetInstance) bool {
	query := q.r.URL.Query()
	group, zone, ldc := query.Get("group"), query.Get("zone"), query.Get("ldcLabel")
	return func(i *apiv1.FleetInstance) bool {
		return (group == "" || i.Group == group) && (zone == "" || i.Zone == zone) && (ldc == "" || i.Labels[v1beta1.LabelLDC] == ldc)
	}
}

// podsOf an AppSet in one cluster.
func (a *API) podsOf(q *request, s *v1beta1.AppSet, cluster string) (memberPods, error) {
	key := string(s.UID) + "/" + cluster
	if kept, ok := a.podReads.kept.Get(key); ok {
		if pods, ok := kept.(memberPods); ok {
			return pods, nil
		}
	}
	// Later callers share the answer, so the read goes on if the first caller gives up.
	ctx := context.WithoutCancel(q.ctx())
	got, err, _ := a.podReads.flights.Do(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(ctx, memberTimeout)
		defer cancel()
		pods, err := a.readPods(ctx, s, cluster)
		if err == nil {
			a.podReads.kept.Add(key, pods, keepPods)
		}
		return pods, err
	})
	pods, _ := got.(memberPods)
	return pods, err
}

func (a *API) readPods(ctx context.Context, s *v1beta1.AppSet, cluster string) (memberPods, error) {
	out := memberPods{}
	reader, err := a.Members.reader(cluster)
	if err != nil {
		return out, err
	}
	owners := newOwners(reader)
	seen := map[string]bool{}
	for _, selector := range podSelectors(s, cluster) {
		list, err := reader.Core.Pods(s.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: maxMemberPods})
		if err != nil {
			return out, memberError(cluster, err)
		}
		out.more = out.more || list.Continue != ""
		for i := range list.Items {
			pod := &list.Items[i]
			of, err := owners.of(ctx, s.Namespace, pod)
			if err != nil {
				return out, memberError(cluster, err)
			}
			if of.part == nil || seen[pod.Name] {
				continue
			}
			if namespace, name, uid := appSetOf(of.part); namespace == s.Namespace && name == s.Name && uid == s.UID {
				seen[pod.Name] = true
				out.items = append(out.items, a.fleetInstance(cluster, pod, of))
			}
		}
	}
	return out, nil
}

// podSelectors of an AppSet in a cluster. What they find is judged by its owners.
func podSelectors(s *v1beta1.AppSet, cluster string) []string {
	if deployType, _ := v1beta1.DeployTypeOf(&s.Spec.PodSpec); deployType != v1beta1.DeployHelm {
		return []string{v1beta1.LabelApp + "=" + s.Name}
	}
	var releases []string
	for i := range s.Spec.ClusterTopology.Clusters {
		c := &s.Spec.ClusterTopology.Clusters[i]
		if v1beta1.FoldClusterName(c.Name) != cluster {
			continue
		}
		for k := range c.PodSets {
			releases = append(releases, c.PodSets[k].Name)
		}
	}
	if len(releases) == 0 {
		return nil
	}
	in := " in (" + strings.Join(releases, ",") + ")"
	return []string{labelHelmRelease + in, v1beta1.LabelRelease + in}
}

func (a *API) fleetInstance(cluster string, pod *corev1.Pod, of belonging) apiv1.FleetInstance {
	return apiv1.FleetInstance{
		Pod: memberPodOf(cluster, pod, of), PodSet: of.podSet, Group: pod.Labels[v1beta1.LabelGroup], Version: pod.Labels[v1beta1.LabelVersion],
		Zone: cmp.Or(pod.Labels[labelZone], a.Members.meta(cluster)[labelZone]), ID: pod.Labels[tappv1.LabelInstanceID],
	}
}

// writeFleetInstances answers with a page.
func (q *request) writeFleetInstances(all *apiv1.FleetInstanceList) error {
	page, err := pageOf(q, all.List, instanceKey)
	if err != nil {
		return err
	}
	return q.writeValue(apiv1.FleetInstanceList{List: page, Clusters: all.Clusters})
}

// errAll refuses the name for all clusters in a route about one pod.
var errAll = apierrors.NewBadRequest("name one cluster: all is for lists")
