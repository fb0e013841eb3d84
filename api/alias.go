package api

import (
	"cmp"
	"net/http"

	"tkestack.io/tapp/api/answer"
	apiv1 "tkestack.io/tapp/api/v1"
	"tkestack.io/tapp/crd/workload/v1beta1"
)

// allClusters is the name that stands for all of them in the paths of the original system.
const allClusters = "all"

// aliases are the read-only routes of the original system, below /api/cluster/{cluster}, where all
// stands for all clusters. They answer as the routes do whose place they take, and need the same rights.
func aliases() []Route {
	const of = "/api/cluster/{cluster}"
	const namespaced = of + "/namespace/{namespace}"
	filters := []Parameter{{"group", "string", "Only those of this group."}, {"zone", "string", "Only those of this zone."}, {"ldcLabel", "string", "Only those of this logical data center."}}
	filters = append(filters, paged()...)
	named := append([]Parameter{{"namespace", "string", "Namespace of the AppSet. Default: default."}}, filters...)
	const mayList, mayPods = "list appsets, in all namespaces or in some", "get appsets, get appsets/instances"
	return []Route{
		{ID: "aliasClusters", Method: http.MethodGet, Path: of, Summary: "The clusters: all of them, or one.", Rights: mayList, Answer: apiv1.List[apiv1.Cluster]{}, handle: (*API).aliasClusters},
		{ID: "aliasResource", Method: http.MethodGet, Path: namespaced + "/app/{name}/resource", Summary: "The pods of an AppSet, and what is known of its podSets.", Rights: mayPods, Query: filters, Answer: apiv1.AliasResource{}, handle: (*API).aliasResource},
		{ID: "aliasAppPod", Method: http.MethodGet, Path: of + "/appPod/{name}", Summary: "The pods of an AppSet.", Rights: mayPods, Query: named, Answer: apiv1.FleetInstanceList{}, handle: (*API).aliasPods},
		{ID: "aliasAppPods", Method: http.MethodGet, Path: of + "/appPods/labels", Summary: "The pods of an AppSet.", Rights: mayPods, Query: append([]Parameter{{"appName", "string", "Name of the AppSet. Required."}}, named...), Answer: apiv1.FleetInstanceList{}, handle: (*API).aliasPods},
		{ID: "aliasHelm", Method: http.MethodGet, Path: of + "/appPod/{name}/helm", Summary: "The releases of an AppSet of charts, one for each podSet.", Rights: "get appsets", Query: named[:1], Answer: apiv1.List[v1beta1.PodSetStatus]{}, handle: (*API).aliasPodSets},
		{ID: "aliasDeploymentsStat", Method: http.MethodGet, Path: of + "/deployments/stat", Summary: "Desired and available instances of the podSets of an AppSet.", Rights: "get appsets", Query: append([]Parameter{{"appName", "string", "Name of the AppSet. Required."}}, named[:2]...), Answer: apiv1.List[v1beta1.PodSetStatus]{}, handle: (*API).aliasPodSets},
		{ID: "aliasEndpoints", Method: http.MethodGet, Path: of + "/endpoints/{name}", Summary: "The addresses of the ready pods of an AppSet.", Rights: mayPods, Query: named[:4], Answer: apiv1.List[apiv1.Endpoint]{}, handle: (*API).aliasEndpoints},
		{ID: "aliasPod", Method: http.MethodGet, Path: namespaced + "/pod/{name}", Summary: "A pod.", Rights: mayPods, Answer: apiv1.Pod{}, handle: one((*API).getMemberPod)},
		{ID: "aliasPodEvents", Method: http.MethodGet, Path: namespaced + "/pods/{name}/event", Summary: "The events about a pod.", Rights: mayPods, Answer: apiv1.List[apiv1.Event]{}, handle: one((*API).listMemberPodEvents)},
		{ID: "aliasPodLogs", Method: http.MethodGet, Path: namespaced + "/pods/{name}/logs", Summary: "The log of a container of a pod.", Rights: "get appsets, get appsets/log", Query: logQuery(), Answer: "", Plain: true, handle: one((*API).memberPodLog)},
	}
}

// one refuses the name for all clusters in a route about one pod.
func one(handle func(*API, *request) error) func(*API, *request) error {
	return func(a *API, q *request) error {
		if q.cluster == allClusters {
			return errAll
		}
		return handle(a, q)
	}
}

// onlyCluster is the cluster of an alias's path; empty: all of them.
func (q *request) onlyCluster() string {
	if q.cluster == allClusters {
		return ""
	}
	return q.cluster
}

func (a *API) aliasClusters(q *request) error {
	if q.cluster == allClusters {
		return a.listClusters(q)
	}
	if err := q.checkQuery(); err != nil {
		return err
	}
	clusters, err := a.clustersOf(q)
	if err != nil {
		return err
	}
	for _, c := range clusters {
		if c.Name == v1beta1.FoldClusterName(q.cluster) {
			return q.writeValue(apiv1.List[apiv1.Cluster]{Items: []apiv1.Cluster{c}, Total: 1})
		}
	}
	return answer.NotFound("no AppSet that you may see is in a cluster %q", q.cluster)
}

// ofQuery takes the name of the AppSet from the query if it is not in the path.
func (q *request) ofQuery() error {
	query := q.r.URL.Query()
	q.namespace = cmp.Or(q.namespace, query.Get("namespace"), "default")
	q.name = cmp.Or(q.name, query.Get("appName"))
	return firstError(q.checkQuery, func() error { return checkName("namespace", q.namespace) }, func() error { return checkName("appName", q.name) })
}

func (a *API) aliasPods(q *request) error {
	if err := q.ofQuery(); err != nil {
		return err
	}
	out, err := a.fleetInstances(q, q.onlyCluster())
	if err != nil {
		return err
	}
	return q.writeFleetInstances(out)
}

func (a *API) aliasResource(q *request) error {
	if err := q.ofQuery(); err != nil {
		return err
	}
	pods, err := a.fleetInstances(q, q.onlyCluster())
	if err != nil {
		return err
	}
	podSets, err := a.podSetsOf(q)
	if err != nil {
		return err
	}
	return q.writeValue(apiv1.AliasResource{Pods: *pods, PodSets: podSets})
}

func (a *API) aliasPodSets(q *request) error {
	if err := firstError(q.ofQuery, func() error { return a.may(q, appSetAccess("get", q.namespace, q.name)) }); err != nil {
		return err
	}
	out, err := a.podSetsOf(q)
	if err != nil {
		return err
	}
	return q.writeValue(apiv1.List[v1beta1.PodSetStatus]{Items: out, Total: len(out)})
}

// podSetsOf the AppSet, as its status has them.
func (a *API) podSetsOf(q *request) ([]v1beta1.PodSetStatus, error) {
	s, err := a.appSet(q)
	if err != nil {
		return nil, err
	}
	out, group := []v1beta1.PodSetStatus{}, q.r.URL.Query().Get("group")
	groups := groupsOf(s)
	for i := range s.Status.AggrStatus.Clusters {
		c := &s.Status.AggrStatus.Clusters[i]
		name := v1beta1.FoldClusterName(c.Name)
		if only := q.onlyCluster(); only != "" && v1beta1.FoldClusterName(only) != name {
			continue
		}
		for k := range c.PodSets {
			p := c.PodSets[k]
			if p.ClusterName = cmp.Or(p.ClusterName, c.Name); group == "" || groups[name+"/"+p.Name] == group {
				out = append(out, p)
			}
		}
	}
	return out, nil
}

func (a *API) aliasEndpoints(q *request) error {
	if err := q.ofQuery(); err != nil {
		return err
	}
	pods, err := a.fleetInstances(q, q.onlyCluster())
	if err != nil {
		return err
	}
	out := apiv1.List[apiv1.Endpoint]{Items: []apiv1.Endpoint{}, Degraded: pods.Degraded}
	for i := range pods.Items {
		if p := &pods.Items[i]; p.Ready && p.IP != "" && !p.Deleting {
			out.Items = append(out.Items, apiv1.Endpoint{Cluster: p.Cluster, Namespace: p.Namespace, PodSet: p.PodSet, Pod: p.Name, IP: p.IP, Node: p.Node})
		}
	}
	out.Total = len(out.Items)
	return q.writeValue(out)
}
