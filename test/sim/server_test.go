package sim

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/sim/apiserver"
)

// The rules of the API server that the simulation stands on.

var somebody = apiserver.Actor{By: "somebody"}

type testedServer struct{ *apiserver.Server }

func testServer(t *testing.T) *testedServer {
	t.Helper()
	s := &testedServer{apiserver.New(func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 5, time.UTC) }, kinds())}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-0", Labels: map[string]string{"app": "web"}}}
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "demo:v1"}, {Name: "side", Image: "side:v1"}}
	pod.Status.Phase = corev1.PodRunning
	tapp := &tappv1.TApp{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}, Spec: tappv1.TAppSpec{Replicas: ptr.To[int32](1)}}
	for resource, o := range map[string]object{pods: pod, tapps: tapp} {
		if _, err := s.Create(resource, o, somebody); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s *testedServer) mustPatch(t *testing.T, resource, name, sub string, kind types.PatchType, data string) object {
	t.Helper()
	o, err := s.Patch(resource, name, sub, kind, []byte(data), somebody)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestCreateRules(t *testing.T) {
	s := testServer(t)
	pod, _ := apiserver.Find[*corev1.Pod](s.Store, pods, "shop/web-0")
	switch {
	case pod.Status.Phase != corev1.PodPending:
		t.Errorf("a new pod is %s", pod.Status.Phase)
	case pod.UID == "" || pod.Generation != 1 || pod.ResourceVersion == "" || pod.Namespace != namespace || pod.CreationTimestamp.Nanosecond() != 0:
		t.Errorf("metadata %+v", pod.ObjectMeta)
	case *pod.Spec.TerminationGracePeriodSeconds != 30 || pod.Spec.RestartPolicy != corev1.RestartPolicyAlways:
		t.Errorf("defaults %+v", pod.Spec)
	}
	if _, err := s.Create(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-0"}}, somebody); !apierrors.IsAlreadyExists(err) {
		t.Errorf("a second pod of the name: %v", err)
	}
	s.Admit = func(string, object) error { return apierrors.NewForbidden(s.GroupResource(pods), "", nil) }
	if _, err := s.Create(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-1"}}, somebody); !apierrors.IsForbidden(err) {
		t.Errorf("a pod that admission refuses: %v", err)
	}
}

func TestPatchRules(t *testing.T) {
	s := testServer(t)
	old, _ := apiserver.Find[*corev1.Pod](s.Store, pods, "shop/web-0")
	same := s.mustPatch(t, pods, "shop/web-0", "", types.StrategicMergePatchType, `{"metadata":{"labels":{"app":"web"}}}`)
	if same.GetResourceVersion() != old.ResourceVersion {
		t.Error("a patch that changes nothing makes a version")
	}
	image := s.mustPatch(t, pods, "shop/web-0", "", types.StrategicMergePatchType, `{"spec":{"containers":[{"name":"side","image":"side:v2"}]},"status":{"phase":"Running"}}`).(*corev1.Pod)
	if image.Spec.Containers[0].Image != "demo:v1" || image.Spec.Containers[1].Image != "side:v2" || image.Generation != 2 || image.Status.Phase != corev1.PodPending {
		t.Errorf("containers merge by name, and status is a subresource: %+v", image)
	}
	status := s.mustPatch(t, pods, "shop/web-0", "status", types.StrategicMergePatchType,
		`{"spec":{"containers":[{"name":"main","image":"demo:v9"}]},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`).(*corev1.Pod)
	if status.Spec.Containers[0].Image != "demo:v1" || !isReady(status) || status.Generation != 2 {
		t.Errorf("the subresource status changes the status: %+v", status)
	}
	for name, c := range map[string]struct {
		sub, data string
		is        func(error) bool
	}{
		"another UID":     {"", `{"metadata":{"uid":"other"}}`, apierrors.IsInvalid},
		"another version": {"", `{"metadata":{"resourceVersion":"1","labels":{"a":"b"}}}`, apierrors.IsConflict},
		"an env":          {"", `{"spec":{"containers":[{"name":"main","env":[{"name":"A","value":"b"}]}]}}`, apierrors.IsInvalid},
		"a resize image":  {"resize", `{"spec":{"containers":[{"name":"main","image":"demo:v2"}]}}`, apierrors.IsInvalid},
	} {
		if _, err := s.Patch(pods, "shop/web-0", c.sub, types.StrategicMergePatchType, []byte(c.data), somebody); !c.is(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.Patch(tapps, "shop/web", "", types.StrategicMergePatchType, []byte(`{}`), somebody); !apierrors.IsBadRequest(err) {
		t.Errorf("a strategic merge patch of a custom resource: %v", err)
	}
	spec := s.mustPatch(t, tapps, "shop/web", "", types.MergePatchType, `{"spec":{"replicas":2},"status":{"replicas":7}}`).(*tappv1.TApp)
	if spec.Generation != 2 || *spec.Spec.Replicas != 2 || spec.Status.Replicas != 0 {
		t.Errorf("a merge patch of the spec: %+v", spec)
	}
	told := s.mustPatch(t, tapps, "shop/web", "status", types.MergePatchType, `{"spec":{"replicas":3},"status":{"replicas":7}}`).(*tappv1.TApp)
	if told.Generation != 2 || *told.Spec.Replicas != 2 || told.Status.Replicas != 7 {
		t.Errorf("a merge patch of the status: %+v", told)
	}
}

func TestDeleteRules(t *testing.T) {
	s := testServer(t)
	other := types.UID("other")
	if _, err := s.Remove(pods, "shop/web-0", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}}, somebody); !apierrors.IsConflict(err) {
		t.Errorf("a delete of another UID: %v", err)
	}
	if _, err := s.Remove(pods, "shop/web-0", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: ptr.To("1")}}, somebody); !apierrors.IsConflict(err) {
		t.Errorf("a delete of another version: %v", err)
	}
	if _, err := s.Update(pods, "shop/web-0", "binding", somebody, func(o object) error { o.(*corev1.Pod).Spec.NodeName = "n1"; return nil }); err != nil {
		t.Fatal(err)
	}
	left, err := s.Remove(pods, "shop/web-0", metav1.DeleteOptions{}, somebody)
	if err != nil || left == nil || left.GetDeletionTimestamp().Sub(s.Second().Time) != 30*time.Second || left.GetGeneration() != 2 {
		t.Fatalf("a pod that runs has a grace period: %+v, %v", left, err)
	}
	if again, err := s.Remove(pods, "shop/web-0", metav1.DeleteOptions{}, somebody); err != nil || again.GetResourceVersion() != left.GetResourceVersion() {
		t.Errorf("a second delete changes something: %v", err)
	}
	if gone, err := s.Remove(pods, "shop/web-0", apiserver.DeleteNow(), somebody); err != nil || gone != nil || s.Get(pods, "shop/web-0") != nil {
		t.Errorf("a delete by force leaves the pod: %v", err)
	}
	policy := metav1.DeletePropagationForeground
	waits, err := s.Remove(tapps, "shop/web", metav1.DeleteOptions{PropagationPolicy: &policy}, somebody)
	if err != nil || waits == nil || !slices.Equal(waits.GetFinalizers(), []string{apiserver.Foreground}) {
		t.Fatalf("a deletion in the foreground: %+v, %v", waits, err)
	}
	var removed *apiserver.Change
	s.Watchers = append(s.Watchers, func(c *apiserver.Change) { removed = c })
	if _, err := s.Patch(tapps, "shop/web", "", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), somebody); err != nil || s.Get(tapps, "shop/web") != nil {
		t.Errorf("without finalizers it stays: %v", err)
	}
	if removed == nil || removed.After != nil || !slices.Equal(removed.Before.GetFinalizers(), waits.GetFinalizers()) {
		t.Errorf("what is removed is told as it was stored: %+v", removed)
	}
}

// The garbage collector deletes what lost its owner, and lets an owner go that is
// deleted in the foreground when nothing is left of it.
func TestCollectorRules(t *testing.T) {
	s := testServer(t)
	k := &kubelets{Server: s.Server, sandboxes: map[types.UID]*sandbox{}, down: map[string]bool{}}
	tapp, _ := apiserver.Find[*tappv1.TApp](s.Store, tapps, "shop/web")
	if _, err := s.Update(pods, "shop/web-0", "", somebody, func(o object) error {
		o.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(tapp, tappv1.GroupVersionKind())})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if list := k.errands(); len(list) != 0 {
		t.Fatalf("errands %v", list)
	}
	policy := metav1.DeletePropagationForeground
	if _, err := s.Remove(tapps, "shop/web", metav1.DeleteOptions{PropagationPolicy: &policy}, somebody); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		for _, e := range k.errands() {
			e.do()
		}
	}
	if s.Get(pods, "shop/web-0") != nil || s.Get(tapps, "shop/web") != nil {
		t.Errorf("what is left: %v %v", s.Tables[pods].Keys(), s.Tables[tapps].Keys())
	}
}
