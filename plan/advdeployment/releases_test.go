package advdeployment

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/release"
)

const charted = `
metadata: {name: app, namespace: shop, uid: app-1, generation: 1, resourceVersion: "1", finalizers: [workload.dmall.com/fleet]}
spec:
  podSpec: {deployType: helm, chart: {rawChart: H4s=}}
  topology: {podSets: [{name: web, replicas: 2}]}
`

// TestReleases: a podSet asks for its release; a release of a podSet that is gone, and
// those of an AdvDeployment that is being deleted, hold the finalizer until they are gone.
func TestReleases(t *testing.T) {
	d := &v1beta1.AdvDeployment{}
	if err := yaml.UnmarshalStrict([]byte(charted), d); err != nil {
		t.Fatal(err)
	}
	in := Input{AdvDeployment: d, Releases: map[string]release.Input{"web": {Account: "tapp-release"}}, Now: time.Unix(1800000000, 0)}
	p := Compute(in)
	if len(p.Releases) != 1 || p.Releases[0].Name != "web" || p.Releases[0].Render == nil || p.Releases[0].Unit == nil {
		t.Fatalf("it plans %+v", p.Releases)
	}
	if s := p.Status.AggrStatus; s.Status != v1beta1.PhaseInstalling || s.Desired != 2 || s.Available != 0 {
		t.Errorf("status %+v", s)
	}

	deployment := map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web"}, "spec": map[string]any{
		"selector": map[string]any{"matchLabels": map[string]any{"a": "b"}},
		"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}, "spec": map[string]any{"containers": []any{map[string]any{"name": "app", "image": "nginx:7"}}}}}}
	ref := release.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	record := release.Record{Version: 1, Status: release.Deployed, Owner: "app-1", Content: Releases(d)[0].Hash, Loaded: true, Objects: []release.Object{{Source: "a", Content: deployment}}}
	seen := release.Input{Account: "tapp-release", Records: []release.Record{record}, Fresh: true, Scopes: map[schema.GroupVersionKind]bool{{Group: "apps", Version: "v1", Kind: "Deployment"}: true},
		Objects: map[release.Ref]*unstructured.Unstructured{ref: nil}}
	in.Releases = map[string]release.Input{"web": seen}
	p = Compute(in)
	if len(p.Releases[0].Steps) != 1 || p.Releases[0].Steps[0].Op != release.Create {
		t.Fatalf("it plans %+v", p.Releases[0].Steps)
	}
	have := &unstructured.Unstructured{Object: p.Releases[0].Steps[0].Manifest}
	have.SetUID("web-1")
	have.Object["status"] = map[string]any{"observedGeneration": int64(0), "replicas": int64(2), "updatedReplicas": int64(2), "readyReplicas": int64(2), "availableReplicas": int64(2),
		"conditions": []any{map[string]any{"type": "Available", "status": "True"}, map[string]any{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}}}
	seen.Objects[ref] = have
	p = Compute(in)
	if s := p.Status.AggrStatus; s.Status != v1beta1.PhaseRunning || s.Available != 2 || s.Version != "7" || !slices.Equal(s.OwnerResource, []string{"Release/web"}) {
		t.Errorf("status %+v, %+v", s, p.Status.Conditions)
	}

	// Its podSet says what is in its way, whatever its numbers are.
	seen.Records[0].Status, seen.Records[0].Description = release.Failed, "hook post-upgrade failed"
	seen.Records[0].Progress.Event = "post-install"
	seen.Records[0].Hooks = []release.Hook{{Object: release.Object{Content: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "h"}}},
		Events: []string{"post-install"}, Run: release.Run{Phase: release.RunFailed}}}
	p = Compute(in)
	if s := p.Status.AggrStatus.PodSets[0]; s.Reason != "HookFailed" || s.Message != `release "web": hook post-upgrade failed. Change the chart or its values, or annotate the AdvDeployment with workload.dmall.com/retry=1 to try again` || s.Available != 2 || s.Observed {
		t.Errorf("status %+v", s)
	}

	// Who makes it a part of an AppSet asks for another try there.
	d.Labels = map[string]string{v1beta1.LabelAppSetUID: "web-1"}
	if s := Compute(in).Status.AggrStatus.PodSets[0]; s.Message != `release "web": hook post-upgrade failed. Change the chart or its values, or try again: kubectl tapp fleet retry app` {
		t.Errorf("status %+v", s)
	}
	d.Annotations = map[string]string{v1beta1.AnnotationRetry: "1"}
	if p = Compute(in); p.Releases[0].Render == nil {
		t.Errorf("asked for another try it plans %+v", p.Releases)
	}

	d.DeletionTimestamp = &metav1.Time{Time: in.Now}
	p = Compute(in)
	if len(p.Actions) > 0 || len(p.Releases) != 1 || len(p.Releases[0].Steps) != 1 || p.Releases[0].Steps[0].Record.Status != release.Uninstalling {
		t.Errorf("it plans %+v and %+v", p.Actions, p.Releases)
	}
	d.Annotations[release.AnnotationKeep] = "true"
	if p = Compute(in); len(p.Releases) > 0 || len(p.Actions) != 1 || p.Actions[0].Op != Finalize {
		t.Errorf("to keep its release it plans %+v and %+v", p.Actions, p.Releases)
	}
	delete(d.Annotations, release.AnnotationKeep)
	d.Finalizers = append(d.Finalizers, metav1.FinalizerOrphanDependents)
	if p = Compute(in); len(p.Releases) > 0 || len(p.Actions) != 1 || p.Actions[0].Op != Finalize {
		t.Errorf("while it is to leave what it owns it plans %+v and %+v", p.Actions, p.Releases)
	}
	d.Finalizers = slices.DeleteFunc(d.Finalizers, func(f string) bool { return f == metav1.FinalizerOrphanDependents })
	in.Releases = map[string]release.Input{"web": {Blind: "forbidden", Account: "tapp-release"}}
	p = Compute(in)
	if len(p.Actions) > 0 || !strings.Contains(p.Status.Conditions[0].Message, "forbidden") {
		t.Errorf("of a release that cannot be seen it plans %+v, %+v", p.Actions, p.Status.Conditions)
	}
	in.Releases = map[string]release.Input{"web": {}}
	if p = Compute(in); len(p.Actions) != 1 || p.Actions[0].Op != Finalize || !p.Actions[0].Absent {
		t.Errorf("without a release it plans %+v", p.Actions)
	}
}
