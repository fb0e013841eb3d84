package release

import (
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tkestack.io/tapp/test/sim/apiserver"
)

type object = apiserver.Object

const (
	deployments = apiserver.Deployments
	jobs        = "jobs"
)

// kinds of the cluster. Objects of charts are applied: their fields have owners.
var kinds = sync.OnceValues(func() (map[string]apiserver.Kind, error) {
	out := apiserver.Core()
	out[deployments] = apiserver.Custom(appsv1.SchemeGroupVersion.WithKind("Deployment"), func() object { return &appsv1.Deployment{} }, func() runtime.Object { return &appsv1.DeploymentList{} })
	out[jobs] = apiserver.Custom(batchv1.SchemeGroupVersion.WithKind("Job"), func() object { return &batchv1.Job{} }, func() runtime.Object { return &batchv1.JobList{} })
	for resource, gvk := range map[string]schema.GroupVersionKind{deployments: appsv1.SchemeGroupVersion.WithKind("Deployment"), jobs: batchv1.SchemeGroupVersion.WithKind("Job"), apiserver.ConfigMaps: corev1.SchemeGroupVersion.WithKind("ConfigMap")} {
		k := out[resource]
		var err error
		if k.Fields, err = apiserver.FieldsOfKind(gvk); err != nil {
			return nil, err
		}
		if resource != apiserver.ConfigMaps {
			k.Custom, k.Tracked = false, true
		}
		out[resource] = k
	}
	return out, nil
})

// static says by path which kinds there are, as an API server does.
var static = map[string]string{
	"/version":       `{"major": "1", "minor": "37", "gitVersion": "v1.37.2"}`,
	"/api":           `{"kind": "APIVersions", "versions": ["v1"]}`,
	"/apis":          `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "apps", "versions": [{"groupVersion": "apps/v1", "version": "v1"}], "preferredVersion": {"groupVersion": "apps/v1", "version": "v1"}}, {"name": "batch", "versions": [{"groupVersion": "batch/v1", "version": "v1"}], "preferredVersion": {"groupVersion": "batch/v1", "version": "v1"}}]}`,
	"/api/v1":        `{"kind": "APIResourceList", "groupVersion": "v1", "resources": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": true, "verbs": ["get"]}, {"name": "secrets", "kind": "Secret", "namespaced": true, "verbs": ["get"]}]}`,
	"/apis/apps/v1":  `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "apps/v1", "resources": [{"name": "deployments", "kind": "Deployment", "namespaced": true, "verbs": ["get"]}]}`,
	"/apis/batch/v1": `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "batch/v1", "resources": [{"name": "jobs", "kind": "Job", "namespaced": true, "verbs": ["get"]}]}`,
}

// errand is the next thing that the rest of the cluster does; nil: nothing.
func (w *world) errand() func() {
	for _, resource := range []string{deployments, jobs, apiserver.ConfigMaps} {
		for _, o := range apiserver.All[object](w.Store, resource) {
			if o.GetDeletionTimestamp() != nil && slices.Contains(o.GetFinalizers(), apiserver.Foreground) {
				return func() {
					_, _ = w.Update(resource, apiserver.Key(o), "", w.as("collector"), func(o object) error {
						o.SetFinalizers(nil)
						return nil
					})
				}
			}
		}
	}
	if do := w.RollOut(); do != nil {
		return do
	}
	for _, j := range apiserver.All[*batchv1.Job](w.Store, jobs) {
		if len(j.Status.Conditions) > 0 {
			continue
		}
		ends := batchv1.JobComplete
		if j.Name == "fails" {
			ends = batchv1.JobFailed
		}
		return func() {
			_, _ = w.Update(jobs, apiserver.Key(j), "status", w.as("jobs"), func(o object) error {
				o.(*batchv1.Job).Status.Conditions = []batchv1.JobCondition{{Type: ends, Status: corev1.ConditionTrue}}
				return nil
			})
		}
	}
	return nil
}
