package plugin

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// byHand is `kubectl set image` of another version in the pod of an instance.
func byHand(pod *corev1.Pod) {
	fields := func(text string) *metav1.FieldsV1 { return metav1.NewFieldsV1(text) }
	pod.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "tapp", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: fields(`{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{"f:name":{}}}}}`)},
		{Manager: "kubectl-set", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: fields(`{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{"f:image":{}}}}}`)},
	}
	pod.Spec.Containers[0].Image = "web:9"
}

// TestDiffPods: what somebody changed in pods is shown once for all that have it, and keys that
// programs add are no difference.
func TestDiffPods(t *testing.T) {
	tapp := webTApp(4, func(t *tappv1.TApp) {
		t.Spec.Template.Labels["tier"] = "silver"
		t.Spec.Template.Annotations = map[string]string{"note": "a"}
	})
	tapp.SetGroupVersionKind(tappv1.GroupVersionKind())
	gold := func(pod *corev1.Pod) { pod.Labels["tier"] = "gold" }
	added := func(pod *corev1.Pod) { pod.Labels["role"], pod.Annotations["ip"] = "leader", "10.0.0.1" }
	bare := func(pod *corev1.Pod) { delete(pod.Annotations, "note") }
	objects := map[string]any{tappsPath: &tappv1.TAppList{Items: []tappv1.TApp{*tapp}}, tappsPath + "/web": tapp}
	for _, c := range []struct {
		name      string
		pods      []*corev1.Pod
		out, note string
	}{
		{"as their templates", []*corev1.Pod{podOf(tapp, "default", 0), podOf(tapp, "default", 1, added)}, "",
			"The pods of web that follow their templates have the images, labels and annotations of these.\n"},
		{"changed", []*corev1.Pod{podOf(tapp, "default", 0, gold), podOf(tapp, "default", 1, gold, byHand), podOf(tapp, "default", 2, added), podOf(tapp, "default", 3, bare, gold)},
			lines(`instances 0-1,3: label tier is "gold", its template says "silver"`,
				`instance 1: container web runs web:9, its template says web:1`,
				`instance 3: annotation note is missing, its template says "a"`), ""},
	} {
		objects[podsPath] = podList(c.pods...)
		serve(t, objects)
		if code, out, note := run(t, program, "diff", "web"); code != 0 || out != c.out || note != c.note {
			t.Errorf("%s: exit code %d, %q, %q, want %q, %q", c.name, code, out, note, c.out, c.note)
		}
	}
}
