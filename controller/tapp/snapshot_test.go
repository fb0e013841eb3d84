package tapp

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// liveAPI answers what a live view of the TApp asks for: its pods are in two pages, with
// another TApp's.
func liveAPI() *stub {
	return &stub{answer: func(method, path, _ string) (int, any) {
		pods := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}}
		switch method + " " + path {
		case "GET /apis/apps.tkestack.io/v1/namespaces/ns/tapps/a":
			return 200, someTApp("a")
		case "GET /api/v1/namespaces/ns/pods":
			pods.Items = []corev1.Pod{*somePod("a-0", "u0", "20"), *somePod("b-0", "u1", "21"), *somePod("a-1", "u2", "22")}
			pods.Continue = "there"
			return 200, pods
		case "GET /api/v1/namespaces/ns/pods?continue=there":
			pods.Items = []corev1.Pod{*somePod("b-1", "u3", "23"), *somePod("a-2", "u4", "24")}
			return 200, pods
		case "GET /apis/apps/v1/namespaces/ns/controllerrevisions":
			return 200, appsv1.ControllerRevisionList{TypeMeta: metav1.TypeMeta{Kind: "ControllerRevisionList", APIVersion: "apps/v1"}}
		}
		return apiError(404, metav1.StatusReasonNotFound, "nothing is at "+path)
	}}
}

// TestLiveView: the pods of all pages, of this TApp alone.
func TestLiveView(t *testing.T) {
	c := liveAPI().newController(t)
	v, err := c.live(t.Context(), keyOf("a"), "uid-a")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range v.pods {
		names = append(names, p.Name)
	}
	if want := []string{"a-0", "a-1", "a-2"}; !slices.Equal(names, want) {
		t.Errorf("pods %v, want %v", names, want)
	}
	if v, err := c.live(t.Context(), keyOf("a"), "another-uid"); v != nil || err != nil {
		t.Errorf("the TApp has been replaced: got %v, %v", v, err)
	}
}

// TestStaleCaches: a TApp whose caches lack its last write is not planned until they have
// it, and on a live view when that takes too long.
func TestStaleCaches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := liveAPI()
		c := api.newController(t)
		var o object
		o.guard.Wrote(storePods, "120")
		v, wait, err := c.snapshot(t.Context(), someTApp("a"), &o)
		if v != nil || wait <= 0 || err != nil || len(api.asked()) > 0 {
			t.Fatalf("got %v, %v, %v, and asked %q; want to wait", v, wait, err, api.asked())
		}
		time.Sleep(wait)
		v, _, err = c.snapshot(t.Context(), someTApp("a"), &o)
		if err != nil || v == nil || len(v.pods) != 3 {
			t.Errorf("got %v, %v; want a live view", v, err)
		}
	})
}
