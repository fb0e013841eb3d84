package main

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	apiv1 "tkestack.io/tapp/api/v1"
	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/effect"
	"tkestack.io/tapp/plan/foresight"
	plan "tkestack.io/tapp/plan/tapp"
	"tkestack.io/tapp/plan/view"
)

// httpExample is a request and its answer.
type httpExample struct {
	name, query string
	// answer is text, or written as JSON.
	answer any
}

// httpExamples by the id of the route. Their types are those of the routes, so that a field
// that goes is noticed.
func httpExamples() map[string]httpExample {
	at := func(minute int) metav1.Time {
		return metav1.NewTime(time.Date(2026, 11, 24, 9, minute, 0, 0, time.UTC))
	}
	summary := func(name string, state apiv1.State) apiv1.Summary {
		return apiv1.Summary{Namespace: "shop", Name: name, UID: "5a0f3c1e-2f5e-4a53-8f0a-5d1f2a9c7b11", Created: at(0), Generation: 2, ObservedGeneration: 2, State: state}
	}
	object := func(apiVersion, kind, name string) json.RawMessage {
		text, _ := json.Marshal(map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"namespace": "shop", "name": name}, "spec": map[string]any{}}) // it marshals
		return text
	}
	web := apiv1.TApp{Summary: summary("web", apiv1.StatePaused), Replicas: 3, Desired: 3, Ready: 3, Available: 3, Updated: 1, Paused: true, MaxUnavailable: 1,
		States: map[string]int{"Running": 3}, Templates: []apiv1.Template{{Name: "default", Images: []string{"web=web:2"}, Instances: 3}}, CurrentRevision: "web-6f1c", UpdateRevision: "web-9b20"}
	web.Attention = []apiv1.Attention{{Severity: apiv1.SeverityPaused, Reason: "Paused", Message: "spec.paused holds updates that are left to do", Since: ptr.To(at(5)), Command: "kubectl tapp resume web -n shop"}}
	waiting := []apiv1.Waiting{{Instances: "1-2", Count: 2, Reason: "Paused", Why: "spec.paused is true"}}
	step := view.Step{Phase: view.Rolling, Effect: effect.UpdateInPlace, IDs: []int{1, 2}, AtMost: 1, Budget: "1", Why: "image of web from web:1 to web:2"}
	hello := apiv1.App{Summary: summary("hello", apiv1.StateReady), Image: "hello:1", Deployment: "hello", Service: "hello", Replicas: 2, Ready: 2}
	rollout := &v1beta1.RolloutStatus{ID: "9b20a6c1f0-2", Revision: "9b20a6c1f0", Stable: "6f1c77d0aa", Stage: "canary",
		Stages: []v1beta1.StageStatus{{Name: "canary", State: "Waiting", PodSets: 1, Done: 1, Started: ptr.To(at(1)), Finished: ptr.To(at(4)), Token: "4be1"}, {Name: "rest", State: "Pending", PodSets: 3}}}
	store := apiv1.AppSet{Summary: summary("store", apiv1.StateWaiting), Phase: "WaitingForConfirm", Version: "v8/v9", Desired: 10, Available: 10, Clusters: []string{"bj", "gz"}, Rollout: rollout}
	store.Attention = []apiv1.Attention{{Severity: apiv1.SeverityWaiting, Reason: "AwaitingConfirmation", Message: "stage canary is done and waits for a confirmation", Since: ptr.To(at(4)), Stage: "canary", Token: "4be1",
		Command: "kubectl tapp fleet confirm store -n shop"}}
	imageChange := view.FieldChange{Path: "spec.podSpec.template.spec.containers[store].image", From: json.RawMessage(`"store:v8"`), To: json.RawMessage(`"store:v9"`)}
	cluster := apiv1.Cluster{Name: "gz", State: "Ready", AppSets: 1, Desired: 5, Available: 5}
	pod := apiv1.Pod{Namespace: "shop", Name: "web-1", UID: "0f7c2a7e-9f1e-4a6f-a0a4-7b9e3d7d5c01", Created: at(1), Phase: "Running", Ready: true, Node: "node-2", IP: "10.0.2.7", Owner: "TApp/web",
		Labels: map[string]string{"app": "web", "tapp_instance_key": "1"}, Containers: []apiv1.Container{{Name: "web", Image: "web:1", Ready: true, State: "running"}}}
	event := func(kind, name, reason, message string) apiv1.List[apiv1.Event] {
		return apiv1.List[apiv1.Event]{Items: []apiv1.Event{{Type: "Normal", Reason: reason, Message: message, Kind: kind, Name: name, Count: 1, First: ptr.To(at(1)), Last: ptr.To(at(1)), Source: "tapp-controller"}}, Total: 1}
	}
	there := pod
	there.Cluster, there.Name, there.Owner, there.Labels = "gz", "store-gz01-canary-0", "AppSet/store", map[string]string{"app": "store", "release": "store-gz01-canary", "sym-group": "canary", "tapp_instance_key": "0"}
	there.Containers = []apiv1.Container{{Name: "store", Image: "store:v9", Ready: true, State: "running"}}
	instances := apiv1.FleetInstanceList{List: apiv1.List[apiv1.FleetInstance]{Items: []apiv1.FleetInstance{{Pod: there, PodSet: "store-gz01-canary", Group: "canary", Version: "v9", ID: "0"}}, Total: 1,
		Degraded: "1 of 2 clusters did not answer: bj"}, Clusters: []apiv1.ClusterAnswer{{Cluster: "bj", Error: "cluster bj is Offline: its API server does not answer in time"}, {Cluster: "gz", Instances: 1}}}
	podSets := []v1beta1.PodSetStatus{{Name: "store-gz01-canary", Desired: 1, Available: 1, Version: "v9", ClusterName: "gz", Observed: true}}
	part := apiv1.Part{Cluster: "gz", State: "Ready", Namespace: "shop", Name: "store", UID: "c1d7f6f2-7a55-4a4e-9e5c-54a7b3f0a9d2", AppSet: "shop/store", Generation: 2, ObservedGeneration: 2, Phase: "Running", Version: "v8/v9", Desired: 5, Available: 5}
	return map[string]httpExample{
		"health":       {answer: "ok"},
		"openapi":      {answer: `{"openapi": "3.0.3", "info": {"title": "tapp api", "version": "v1"}, ...}`},
		"whoAmI":       {answer: apiv1.User{User: "system:serviceaccount:shop:viewer", Groups: []string{"system:serviceaccounts", "system:authenticated"}}},
		"listAllTApps": {query: "?limit=1", answer: apiv1.List[apiv1.TApp]{Items: []apiv1.TApp{web}, Total: 2, Continue: "shop/web"}},
		"listTApps": {query: "?watch=1", answer: "event: list\nid: 5d0a7c2e1b4f9a83c6e27d10\ndata: {\"items\":[...],\"total\":1}\n\nevent: health\ndata: {}\n\n" +
			"event: change\nid: 77e1f0ab3c925d6418ba20cf\ndata: {\"items\":[{\"namespace\":\"shop\",\"name\":\"web\",...}],\"total\":1}"},
		"getTApp": {name: "web", answer: apiv1.TAppDetail{TApp: web, Waiting: waiting, Steps: []apiv1.Step{{Step: step, Sentence: step.Sentence()}},
			Commands: []apiv1.Hint{{Title: "Let updates go on", Line: "kubectl tapp resume web -n shop"}}, Object: object("apps.tkestack.io/v1", "TApp", "web")}},
		"listInstances": {name: "web", query: "?limit=1&continue=0", answer: apiv1.InstanceList{
			List: apiv1.List[apiv1.Instance]{Items: []apiv1.Instance{{ID: "1", Template: "default", State: "Running", Since: ptr.To(at(1)), Desired: true, Available: true, Version: "v1-6f1c77d0aa", Pod: "web-1", Node: "node-2",
				Reason: "Paused", Why: "spec.paused is true"}}, Total: 3, Continue: "1"},
			InstanceSums: apiv1.InstanceSums{States: map[string]int{"Running": 3}, Versions: []apiv1.Version{{Hash: "v1-6f1c77d0aa", Images: []string{"web=web:1"}, Instances: 2}, {Hash: "v1-9b20a6c1f0", Images: []string{"web=web:2"}, Instances: 1, Current: 1}},
				Waiting: waiting, Desired: 3, Available: 3, MaxUnavailable: 1}}},
		"listRevisions": {name: "web", answer: apiv1.List[apiv1.Revision]{Items: []apiv1.Revision{{Revision: view.Revision{Revision: 2, Name: "web-9b20", Created: at(1), Update: true, Change: "template.spec.containers[web].image: web:1 -> web:2"},
			Changes: []view.FieldChange{{Path: "template.spec.containers[web].image", From: json.RawMessage(`"web:1"`), To: json.RawMessage(`"web:2"`)}}}}, Total: 1}},
		"listTAppEvents": {name: "web", answer: event("TApp", "web", "SuccessfulCreate", "created instance 1: the instance has no pod")},
		"previewTApp": {answer: apiv1.Preview{Preview: view.Preview{Namespace: "shop", Name: "web", Changes: []view.FieldChange{{Path: "spec.template.spec.containers[web].image", From: json.RawMessage(`"web:1"`), To: json.RawMessage(`"web:2"`)}},
			Steps: []view.Step{step}, First: []view.FirstAction{{Op: plan.OpDrain, IDs: []int{1}, Reason: "ImageChanged", Why: step.Why}}}, Sentences: []string{step.Sentence()}}},
		"listAllApps":      {answer: apiv1.List[apiv1.App]{Items: []apiv1.App{hello}, Total: 1}},
		"listApps":         {answer: apiv1.List[apiv1.App]{Items: []apiv1.App{hello}, Total: 1}},
		"getApp":           {name: "hello", answer: apiv1.AppDetail{App: hello, Commands: []apiv1.Hint{{Title: "Follow its Deployment", Line: "kubectl rollout status deployment/hello -n shop"}}, Object: object("appcontroller.k8s.io/v1", "App", "hello")}},
		"listAppEvents":    {name: "hello", answer: event("App", "hello", "Synced", "App synced successfully")},
		"listAllAppSets":   {answer: apiv1.List[apiv1.AppSet]{Items: []apiv1.AppSet{store}, Total: 1}},
		"listAppSets":      {answer: apiv1.List[apiv1.AppSet]{Items: []apiv1.AppSet{store}, Total: 1}},
		"getAppSet":        {name: "store", answer: apiv1.AppSetDetail{AppSet: store, ClusterStatuses: []v1beta1.ClusterStatus{{Name: "gz", State: v1beta1.ClusterReady, Desired: 5, Available: 5}}, Object: object("workload.dmall.com/v1beta1", "AppSet", "store")}},
		"getRollout":       {name: "store", answer: rollout},
		"listAppSetEvents": {name: "store", answer: event("AppSet", "store", "Progressing", "stage canary began")},
		"listAppSetRevisions": {name: "store", answer: apiv1.List[apiv1.AppSetRevision]{Items: []apiv1.AppSetRevision{{Revision: view.Revision{Revision: 2, Name: "store-9b20a6c1f0", Created: at(1), Update: true, Change: imageChange.String()},
			Content: "9b20a6c1f0", Versions: "v9", Changes: []view.FieldChange{imageChange}}}, Total: 1}},
		"previewAppSet": {answer: apiv1.AppSetPreview{Namespace: "shop", Name: "store", Changes: []view.FieldChange{imageChange}, State: "Staged",
			Stages:    []foresight.Stage{{Name: "canary", Clusters: []string{"gz"}, Concurrent: 1, Changes: []foresight.Change{{Cluster: "gz", PodSet: "store-gz01-canary", Effect: effect.UpdateInPlace, Instances: 1, IDs: "0", Why: "image of store from store:v8 to store:v9"}}, Confirm: true}},
			Sentences: []string{"stage canary (gz): 1 instance is updated in place: image of store from store:v8 to store:v9; then it waits for a confirmation"}}},
		"listClusters":        {answer: apiv1.List[apiv1.Cluster]{Items: []apiv1.Cluster{cluster}, Total: 1}},
		"getCluster":          {name: "gz", answer: cluster},
		"listAppSetInstances": {name: "store", query: "?group=canary", answer: instances},
		"listAllParts":        {query: "?limit=1", answer: apiv1.List[apiv1.Part]{Items: []apiv1.Part{part}, Total: 2, Continue: "gz/shop/store"}},
		"listPartsOfCluster":  {answer: apiv1.List[apiv1.Part]{Items: []apiv1.Part{part}, Total: 1}},
		"listParts":           {answer: apiv1.List[apiv1.Part]{Items: []apiv1.Part{part}, Total: 1}},
		"getPart": {name: "store", answer: apiv1.PartDetail{Part: part,
			PodSets: podSets, Object: object("workload.dmall.com/v1beta1", "AdvDeployment", "store")}},
		"getMemberPod":         {name: there.Name, answer: there},
		"listMemberPodEvents":  {name: there.Name, answer: event("Pod", there.Name, "Scheduled", "Successfully assigned shop/store-gz01-canary-0 to node-2")},
		"memberPodLog":         {name: there.Name, query: "?tail=1", answer: "listening on :8080"},
		"aliasClusters":        {answer: apiv1.List[apiv1.Cluster]{Items: []apiv1.Cluster{cluster}, Total: 1}},
		"aliasResource":        {name: "store", query: "?group=canary", answer: apiv1.AliasResource{Pods: instances, PodSets: podSets}},
		"aliasAppPod":          {name: "store", query: "?namespace=shop&group=canary", answer: instances},
		"aliasAppPods":         {query: "?appName=store&namespace=shop&group=canary", answer: instances},
		"aliasHelm":            {name: "store", query: "?namespace=shop", answer: apiv1.List[v1beta1.PodSetStatus]{Items: podSets, Total: 1}},
		"aliasDeploymentsStat": {query: "?appName=store&namespace=shop", answer: apiv1.List[v1beta1.PodSetStatus]{Items: podSets, Total: 1}},
		"aliasEndpoints":       {name: "store", query: "?namespace=shop", answer: apiv1.List[apiv1.Endpoint]{Items: []apiv1.Endpoint{{Cluster: "gz", Namespace: "shop", PodSet: "store-gz01-canary", Pod: there.Name, IP: there.IP, Node: there.Node}}, Total: 1}},
		"aliasPod":             {name: there.Name, answer: there},
		"aliasPodEvents":       {name: there.Name, answer: event("Pod", there.Name, "Scheduled", "Successfully assigned shop/store-gz01-canary-0 to node-2")},
		"aliasPodLogs":         {name: there.Name, query: "?tail=1", answer: "listening on :8080"},
		"getPod":               {name: "web-1", answer: pod},
		"listPodEvents":        {name: "web-1", answer: event("Pod", "web-1", "Scheduled", "Successfully assigned shop/web-1 to node-2")},
		"podLog":               {name: "web-1", query: "?tail=2&follow=1", answer: "listening on :8080\nGET / 200"},
	}
}
