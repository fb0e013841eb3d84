// Package argocd asks Argo CD's own code what becomes of claims.
package argocd

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/cache"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync/common"
	resourceutil "github.com/argoproj/argo-cd/gitops-engine/pkg/sync/resource"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/kube"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/kube/kubetest"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	testcore "k8s.io/client-go/testing"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
)

const (
	namespace = "shop"
	tracked   = tappv1.DefaultTrackingLabel
)

// volumes are claim templates, without and with annotations of their own.
func volumes() []corev1.PersistentVolumeClaim {
	return []corev1.PersistentVolumeClaim{
		{ObjectMeta: metav1.ObjectMeta{Name: "data"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "logs", Annotations: map[string]string{common.AnnotationSyncOptions: "Validate=false"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "tmp", Annotations: map[string]string{common.AnnotationSyncOptions: "Prune=true,Delete=true"}}},
	}
}

func labels(name string) map[string]string { return map[string]string{tracked: "shop", "app": name} }

// claimsOf the TApp are those that the planner makes, of its one instance.
func claimsOf(t *testing.T, name, tracking string) (out []runtime.Object) {
	t.Helper()
	tapp := &tappv1.TApp{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name)}}
	tapp.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels(name)}
	tapp.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels(name)}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "demo:v1"}}}}
	tapp.Spec.VolumeClaimTemplates = volumes()
	for _, a := range plan.Compute(plan.Input{TApp: tapp, Policy: plan.Policy{Tracking: tracking}}).Actions {
		if a.Op == plan.OpCreateClaim {
			a.Claim.UID = types.UID(a.Claim.Name)
			out = append(out, a.Claim)
		}
	}
	if len(out) != len(volumes()) {
		t.Fatalf("%d claims are made", len(out))
	}
	return out
}

// statefulSet and its claim, as the controller of StatefulSets makes it.
func statefulSet(name string) []runtime.Object {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name)}, Spec: appsv1.StatefulSetSpec{VolumeClaimTemplates: volumes()[:1]}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "data-" + name + "-0", UID: types.UID("data-" + name + "-0"), Labels: labels(name)}}
	return []runtime.Object{set, claim}
}

// strays are the claims that Argo CD finds for an Application whose manifests are the TApps and
// StatefulSets alone: what has the label of the Application, and no owner.
func strays(t *testing.T, objects ...runtime.Object) map[kube.ResourceKey]*unstructured.Unstructured {
	t.Helper()
	client := fake.NewSimpleDynamicClient(scheme.Scheme, objects...)
	reactor := client.ReactionChain[0]
	client.PrependReactor("list", "*", func(action testcore.Action) (bool, runtime.Object, error) {
		handled, list, err := reactor.React(action)
		if l, ok := list.(metav1.ListInterface); ok {
			l.SetResourceVersion("1")
		}
		return handled, list, err
	})
	info := func(group, kind, resource string) kube.APIResourceInfo {
		return kube.APIResourceInfo{GroupKind: schema.GroupKind{Group: group, Kind: kind}, GroupVersionResource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource},
			Meta: metav1.APIResource{Namespaced: true}}
	}
	c := cache.NewClusterCache(&rest.Config{Host: "https://test"}, cache.SetKubectl(&kubetest.MockKubectlCmd{DynamicClient: client,
		APIResources: []kube.APIResourceInfo{info("", "PersistentVolumeClaim", "persistentvolumeclaims"), info("apps", "StatefulSet", "statefulsets")}}),
		cache.SetPopulateResourceInfoHandler(func(un *unstructured.Unstructured, isRoot bool) (any, bool) { return un.GetLabels()[tracked], isRoot }))
	if err := c.EnsureSynced(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Invalidate() })
	found, err := c.GetManagedLiveObjs(nil, func(r *cache.Resource) bool { return r.Info == "shop" })
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// pruned says what a sync with pruning does to each of them.
func pruned(t *testing.T, live map[kube.ResourceKey]*unstructured.Unstructured) map[string]common.ResultCode {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: "v1",
			APIResources: []metav1.APIResource{{Name: "persistentvolumeclaims", Kind: "PersistentVolumeClaim", Namespaced: true, Version: "v1", Verbs: metav1.Verbs{"get", "list", "watch", "create", "patch", "delete"}}}})
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL}
	result := sync.Reconcile(nil, live, namespace, everything{})
	s, end, err := sync.NewSyncContext("revision", result, config, config, &kubetest.MockKubectlCmd{}, namespace, sync.WithPrune(true),
		sync.WithPermissionValidator(func(*unstructured.Unstructured, *metav1.APIResource) error { return nil }))
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	s.Sync()
	out := map[string]common.ResultCode{}
	phase, message, results := s.GetState()
	for _, r := range results {
		out[r.ResourceKey.Name] = r.Status
	}
	if len(out) == 0 {
		t.Fatalf("nothing was looked at: %s %s", phase, message)
	}
	return out
}

// everything is in a namespace.
type everything struct{}

func (everything) IsNamespaced(schema.GroupKind) (bool, error) { return true, nil }

// TestClaims: a StatefulSet's claim is none of Argo CD's strays. A TApp's is one, and is neither
// pruned, nor deleted with its Application, nor a difference. Without the annotations it was
// pruned, and it is where its template asks for that.
func TestClaims(t *testing.T) {
	objects := slices.Concat(claimsOf(t, "ours", tracked), claimsOf(t, "before", ""), statefulSet("set"))
	live := strays(t, objects...)
	for key := range live {
		if strings.Contains(key.Name, "-set-") {
			t.Errorf("%s is a stray", key.Name)
		}
	}
	if len(live) != 6 {
		t.Fatalf("%d claims are strays, want those of the TApps", len(live))
	}
	for _, o := range live {
		name := o.GetName()
		mine := strings.Contains(name, "-ours-")
		// As Argo CD's application controller asks (shouldBeDeleted, and the comparison of states).
		kept := resourceutil.HasAnnotationOption(o, common.AnnotationSyncOptions, "Delete=false")
		if want := mine && name != "tmp-ours-0"; kept != want {
			t.Errorf("%s stays when its Application goes: %t, want %t", name, kept, want)
		}
		if extraneous := resourceutil.HasAnnotationOption(o, "argocd.argoproj.io/compare-options", "IgnoreExtraneous"); extraneous != mine {
			t.Errorf("%s is left out of the comparison: %t", name, extraneous)
		}
	}
	if !resourceutil.HasAnnotationOption(live[kube.NewResourceKey("", "PersistentVolumeClaim", namespace, "logs-ours-0")], common.AnnotationSyncOptions, "Validate=false") {
		t.Error("what the template says is lost")
	}
	for name, code := range pruned(t, live) {
		want := common.ResultCodePruned
		if strings.Contains(name, "-ours-") && name != "tmp-ours-0" {
			want = common.ResultCodePruneSkipped
		}
		if code != want {
			t.Errorf("%s: %s, want %s", name, code, want)
		}
	}
}
