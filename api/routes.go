package api

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	apiv1 "tkestack.io/tapp/api/v1"
	"tkestack.io/tapp/crd/workload/v1beta1"
)

// Route is one row of the table of routes.
type Route struct {
	// ID is the operationId of the OpenAPI document.
	ID     string
	Method string
	// Path as gorilla/mux and OpenAPI have it.
	Path string
	// Summary is one line, Rights says what the caller needs.
	Summary, Rights string
	// Query are the parameters beside those of the path.
	Query []Parameter
	// Answer is an example of the type of the body.
	Answer any
	// Body is an example of the type of the request's body; nil: there is none.
	Body any
	// Open routes ask nobody who they are.
	Open bool
	// Plain answers with text.
	Plain bool
	// Stream is whether ?watch=1 is understood.
	Stream bool

	handle func(*API, *request) error
}

// Parameter of a query.
type Parameter struct {
	Name, Type, Text string
}

func paged() []Parameter {
	return []Parameter{
		{"limit", "integer", "How many items a page has at most: 1 to 5000. Default: 500."},
		{"continue", "string", "The member continue of the page before."},
	}
}

func watched(more ...Parameter) []Parameter {
	return append(more, Parameter{"watch", "boolean", "1 or true: a stream of server-sent events instead; see Streams."})
}

// Routes are all that there are, in the order of the documentation.
func Routes() []Route {
	const tappsOf, appsOf = "/api/v1/namespaces/{namespace}/tapps", "/api/v1/namespaces/{namespace}/apps"
	const appSetsOf = "/api/v1/namespaces/{namespace}/appsets"
	const podOf = "/api/v1/namespaces/{namespace}/pods/{name}"
	const memberOf = "/api/v1/clusters/{cluster}/namespaces/{namespace}"
	return append([]Route{
		{ID: "health", Method: http.MethodGet, Path: "/healthz", Summary: "Say whether the server runs.", Rights: "none", Answer: "ok", Open: true, Plain: true, handle: (*API).health},
		{ID: "openapi", Method: http.MethodGet, Path: "/api/openapi.json", Summary: "The OpenAPI document of these routes.", Rights: "any caller that is known", Answer: map[string]any{}, handle: (*API).openAPI},

		{ID: "whoAmI", Method: http.MethodGet, Path: "/api/v1/whoami", Summary: "Say who the caller is.", Rights: "any caller that is known", Answer: apiv1.User{}, handle: (*API).whoAmI},

		{ID: "listAllTApps", Method: http.MethodGet, Path: "/api/v1/tapps", Summary: "List the TApps of all namespaces that the caller may see.", Rights: "list tapps, in all namespaces or in some", Query: watched(paged()...), Answer: apiv1.List[apiv1.TApp]{}, Stream: true, handle: (*API).listTApps},
		{ID: "listTApps", Method: http.MethodGet, Path: tappsOf, Summary: "List the TApps of a namespace.", Rights: "list tapps", Query: watched(paged()...), Answer: apiv1.List[apiv1.TApp]{}, Stream: true, handle: (*API).listTApps},
		{ID: "getTApp", Method: http.MethodGet, Path: tappsOf + "/{name}", Summary: "Show a TApp, what it waits for and what is left to do.", Rights: "get tapps", Query: watched(), Answer: apiv1.TAppDetail{}, Stream: true, handle: (*API).getTApp},
		{ID: "listInstances", Method: http.MethodGet, Path: tappsOf + "/{name}/instances", Summary: "List the instances of a TApp, with the planner's reasons.", Rights: "get tapps, get pods", Query: watched(paged()...), Answer: apiv1.InstanceList{}, Stream: true, handle: (*API).listInstances},
		{ID: "listRevisions", Method: http.MethodGet, Path: tappsOf + "/{name}/history", Summary: "List the versions of a TApp's templates, the oldest first, and what changed.", Rights: "get tapps", Answer: apiv1.List[apiv1.Revision]{}, handle: (*API).listRevisions},
		{ID: "listTAppEvents", Method: http.MethodGet, Path: tappsOf + "/{name}/events", Summary: "List the events about a TApp, the latest first.", Rights: "get tapps", Answer: apiv1.List[apiv1.Event]{}, handle: (*API).listTAppEvents},
		{ID: "previewTApp", Method: http.MethodPost, Path: tappsOf + ":preview", Summary: "Tell what applying a manifest would do. Nothing is written.", Rights: "get tapps", Body: map[string]any{}, Answer: apiv1.Preview{}, handle: (*API).previewTApp},

		{ID: "listAllApps", Method: http.MethodGet, Path: "/api/v1/apps", Summary: "List the Apps of all namespaces that the caller may see.", Rights: "list apps, in all namespaces or in some", Query: watched(paged()...), Answer: apiv1.List[apiv1.App]{}, Stream: true, handle: (*API).listApps},
		{ID: "listApps", Method: http.MethodGet, Path: appsOf, Summary: "List the Apps of a namespace.", Rights: "list apps", Query: watched(paged()...), Answer: apiv1.List[apiv1.App]{}, Stream: true, handle: (*API).listApps},
		{ID: "getApp", Method: http.MethodGet, Path: appsOf + "/{name}", Summary: "Show an App.", Rights: "get apps", Query: watched(), Answer: apiv1.AppDetail{}, Stream: true, handle: (*API).getApp},
		{ID: "listAppEvents", Method: http.MethodGet, Path: appsOf + "/{name}/events", Summary: "List the events about an App, the latest first.", Rights: "get apps", Answer: apiv1.List[apiv1.Event]{}, handle: (*API).listAppEvents},

		{ID: "listAllAppSets", Method: http.MethodGet, Path: "/api/v1/appsets", Summary: "List the AppSets of all namespaces that the caller may see.", Rights: "list appsets, in all namespaces or in some", Query: watched(paged()...), Answer: apiv1.List[apiv1.AppSet]{}, Stream: true, handle: (*API).listAppSets},
		{ID: "listAppSets", Method: http.MethodGet, Path: appSetsOf, Summary: "List the AppSets of a namespace.", Rights: "list appsets", Query: watched(paged()...), Answer: apiv1.List[apiv1.AppSet]{}, Stream: true, handle: (*API).listAppSets},
		{ID: "getAppSet", Method: http.MethodGet, Path: appSetsOf + "/{name}", Summary: "Show an AppSet, and what is known of its clusters.", Rights: "get appsets", Query: watched(), Answer: apiv1.AppSetDetail{}, Stream: true, handle: (*API).getAppSet},
		{ID: "getRollout", Method: http.MethodGet, Path: appSetsOf + "/{name}/rollout", Summary: "Show how far the rollout of an AppSet has come, stage by stage.", Rights: "get appsets", Query: watched(), Answer: v1beta1.RolloutStatus{}, Stream: true, handle: (*API).getRollout},
		{ID: "listAppSetEvents", Method: http.MethodGet, Path: appSetsOf + "/{name}/events", Summary: "List the events about an AppSet, the latest first.", Rights: "get appsets", Answer: apiv1.List[apiv1.Event]{}, handle: (*API).listAppSetEvents},
		{ID: "listAppSetRevisions", Method: http.MethodGet, Path: appSetsOf + "/{name}/history", Summary: "List what an AppSet asked for, the oldest first, and what changed.", Rights: "get appsets", Answer: apiv1.List[apiv1.AppSetRevision]{}, handle: (*API).listAppSetRevisions},
		{ID: "previewAppSet", Method: http.MethodPost, Path: appSetsOf + ":preview", Summary: "Tell what applying a manifest would do in all clusters: stages, gates, and what becomes of the instances. Nothing is written.", Rights: "get appsets", Body: map[string]any{}, Answer: apiv1.AppSetPreview{}, handle: (*API).previewAppSet},
		{ID: "listAppSetInstances", Method: http.MethodGet, Path: appSetsOf + "/{name}/instances", Summary: "List the pods of an AppSet in all its clusters, which are asked live. Clusters that do not answer are told.", Rights: "get appsets, get appsets/instances", Query: instanceQuery(), Answer: apiv1.FleetInstanceList{}, handle: (*API).listFleetInstances},
		{ID: "listClusters", Method: http.MethodGet, Path: "/api/v1/clusters", Summary: "List the clusters of the AppSets that the caller may see, as their statuses tell of them.", Rights: "list appsets, in all namespaces or in some", Answer: apiv1.List[apiv1.Cluster]{}, handle: (*API).listClusters},
		{ID: "getCluster", Method: http.MethodGet, Path: "/api/v1/clusters/{name}", Summary: "Show one of these clusters.", Rights: "list appsets, in all namespaces or in some", Answer: apiv1.Cluster{}, handle: (*API).getCluster},

		{ID: "listAllParts", Method: http.MethodGet, Path: "/api/v1/advdeployments", Summary: "List the parts of the AppSets that the caller may see: their AdvDeployments in all clusters, as they were seen last. Clusters that do not answer are told.", Rights: "list appsets, in all namespaces or in some", Query: paged(), Answer: apiv1.List[apiv1.Part]{}, handle: (*API).listParts},
		{ID: "listPartsOfCluster", Method: http.MethodGet, Path: "/api/v1/clusters/{cluster}/advdeployments", Summary: "List those in one cluster.", Rights: "list appsets, in all namespaces or in some", Query: paged(), Answer: apiv1.List[apiv1.Part]{}, handle: (*API).listParts},
		{ID: "listParts", Method: http.MethodGet, Path: memberOf + "/advdeployments", Summary: "List those in one namespace of a cluster.", Rights: "list appsets, in all namespaces or in some", Query: paged(), Answer: apiv1.List[apiv1.Part]{}, handle: (*API).listParts},
		{ID: "getPart", Method: http.MethodGet, Path: memberOf + "/advdeployments/{name}", Summary: "Show the part of an AppSet in a cluster, as it was seen last.", Rights: "get appsets of the AppSet that it is of", Answer: apiv1.PartDetail{}, handle: (*API).getPart},
		{ID: "getMemberPod", Method: http.MethodGet, Path: memberOf + "/pods/{name}", Summary: "Show a pod of an AppSet in a cluster.", Rights: "get appsets, get appsets/instances of the AppSet that it is of", Answer: apiv1.Pod{}, handle: (*API).getMemberPod},
		{ID: "listMemberPodEvents", Method: http.MethodGet, Path: memberOf + "/pods/{name}/events", Summary: "List the events about a pod of an AppSet in a cluster, the latest first.", Rights: "get appsets, get appsets/instances of the AppSet that it is of", Answer: apiv1.List[apiv1.Event]{}, handle: (*API).listMemberPodEvents},
		{ID: "memberPodLog", Method: http.MethodGet, Path: memberOf + "/pods/{name}/log", Summary: "The log of a container of a pod of an AppSet in a cluster.", Rights: "get appsets, get appsets/log of the AppSet that it is of", Query: logQuery(), Answer: "", Plain: true, handle: (*API).memberPodLog},

		{ID: "getPod", Method: http.MethodGet, Path: podOf, Summary: "Show a pod of a TApp or an App.", Rights: "get pods, and get of the TApp or App that owns it", Answer: apiv1.Pod{}, handle: (*API).getPod},
		{ID: "listPodEvents", Method: http.MethodGet, Path: podOf + "/events", Summary: "List the events about a pod of a TApp or an App, the latest first.", Rights: "get pods, and get of the owner", Answer: apiv1.List[apiv1.Event]{}, handle: (*API).listPodEvents},
		{ID: "podLog", Method: http.MethodGet, Path: podOf + "/log", Summary: "The log of a container of a pod of a TApp or an App.", Rights: "get pods/log, and get of the owner", Query: logQuery(), Answer: "", Plain: true, handle: (*API).podLog},
	}, aliases()...)
}

func instanceQuery() []Parameter {
	return append([]Parameter{
		{"cluster", "string", "Only those in this cluster."},
		{"group", "string", "Only those of this group, such as canary."},
		{"zone", "string", "Only those of this zone."},
	}, paged()...)
}

func logQuery() []Parameter {
	return []Parameter{
		{"container", "string", "Name of the container. Default: the first one, or the one of the annotation kubectl.kubernetes.io/default-container."},
		{"tail", "integer", "How many lines from the end: 0 to 10000. Default: 1000."},
		{"follow", "boolean", "1 or true: go on until the container ends."},
		{"previous", "boolean", "1 or true: the container before the last restart."},
		{"timestamps", "boolean", "1 or true: each line begins with its time."},
	}
}

// Status is how errors are told: that of Kubernetes.
type Status = metav1.Status
