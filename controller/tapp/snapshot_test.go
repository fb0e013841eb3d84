package tapp

import (
	"slices"
	"testing"
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
		return status(404, metav1.StatusReasonNotFound, "nothing is at "+path)
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

// TestOneLiveViewAtATime: while one TApp is looked at live, another one whose caches are
// behind waits for its turn, and its patience is not used up by that.
func TestOneLiveViewAtATime(t *testing.T) {
	api := liveAPI()
	c := api.newController(t)
	var m memory
	m.guard.wrotePod("120")
	m.guard.since, m.guard.patience = time.Now().Add(-patience), patience

	c.looking.Lock()
	if v, wait, err := c.snapshot(t.Context(), someTApp("a"), &m); v != nil || wait != lookAgain || err != nil {
		t.Fatalf("another one is looked at: got %v, %v, %v; want to wait", v, wait, err)
	}
	if asked := api.asked(); len(asked) > 0 {
		t.Fatalf("asked %q, want nothing", asked)
	}
	c.looking.Unlock()

	v, _, err := c.snapshot(t.Context(), someTApp("a"), &m)
	if err != nil || v == nil || len(v.pods) != 3 {
		t.Fatalf("nobody is looked at: got %v, %v; want a live view", v, err)
	}
	if v, wait, err := c.snapshot(t.Context(), someTApp("a"), &m); v != nil || wait <= patience || wait > 2*patience || err != nil {
		t.Errorf("after a live view: got %v, %v, %v; want to wait longer than the first time", v, wait, err)
	}
	if !c.looking.TryLock() {
		t.Error("the live view is made, and its turn is not over")
	}
}
