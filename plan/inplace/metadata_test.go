package inplace

import (
	"encoding/json"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// TestRemovedKeys: the original's fault 12. Labels and annotations that left the
// template stayed on the pods.
func TestRemovedKeys(t *testing.T) {
	pod := podWith("a:1")
	pod.Labels = map[string]string{"app": "x", "gone": "1", "changed": "1", "foreign": "1",
		tappv1.LabelInstanceID: "0", tappv1.LabelTemplateHash: "2473541281"}
	pod.Annotations = map[string]string{"gone": "1", "foreign": "1", tappv1.AnnotationFailures: "3",
		tappv1.AnnotationTemplateKeys: `{"labels":["app","changed","gone","tapp_instance_key","never-there"],"annotations":["gone","tkestack.io/failures"]}`}
	want := podWith("a:1")
	want.Labels = map[string]string{"app": "x", "changed": "2", "new": "1", tappv1.LabelInstanceID: "0", tappv1.LabelPodIndex: "0",
		tappv1.LabelTemplateHash: "stale", tappv1.LabelUniqHash: "stale"}
	want.Annotations = map[string]string{tappv1.AnnotationTemplateKeys: `{"labels":["app","changed","new"]}`}
	labels := map[string]string{"app": "x", "changed": "2", "new": "1", "foreign": "1", tappv1.LabelInstanceID: "0", tappv1.LabelPodIndex: "0",
		tappv1.LabelTemplateHash: someHashes.Template, tappv1.LabelUniqHash: someHashes.Uniq}
	annotations := map[string]string{"foreign": "1", tappv1.AnnotationFailures: "3", tappv1.AnnotationTemplateKeys: `{"labels":["app","changed","new"]}`}

	patch, err := RelabelPatch(pod, want, someHashes)
	if err != nil {
		t.Fatal(err)
	}
	next := applyPatch(t, pod, patch)
	if !maps.Equal(next.Labels, labels) || !maps.Equal(next.Annotations, annotations) {
		t.Errorf("%v\n%v", next.Labels, next.Annotations)
	}
	if patch, err := RelabelPatch(next, want, someHashes); patch != nil || err != nil {
		t.Errorf("a second patch: %s, %v", patch, err)
	}
	if next, _ := patchTo(t, pod, want); !maps.Equal(next.Labels, labels) || len(next.Annotations) != len(annotations)+1 {
		t.Errorf("in place: %v\n%v", next.Labels, next.Annotations)
	}
}

// TestRelabelledIsKept: a pod that was made as its instance was has that content still, when only
// its labels become others; so it keeps its chance to become Ready.
func TestRelabelledIsKept(t *testing.T) {
	for name, c := range map[string]struct{ hash, kept, want string }{
		"kept":                     {"v1-a", "v1-a", someHashes.Template},
		"updated since":            {"v1-b", "v1-a", "v1-a"},
		"made from its template":   {"v1-a", "", ""},
		"its hash was overwritten": {"wrong", "v1-a", "v1-a"},
	} {
		pod := podWith("a:1")
		pod.Labels = map[string]string{tappv1.LabelTemplateHash: c.hash}
		if c.kept != "" {
			pod.Annotations = map[string]string{tappv1.AnnotationKept: c.kept}
		}
		patch, err := RelabelPatch(pod, podWith("a:1"), someHashes)
		if err != nil {
			t.Fatal(err)
		}
		if got := applyPatch(t, pod, patch).Annotations[tappv1.AnnotationKept]; got != c.want {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
	}
}

// TestKeysOfATemplateThatLostAll: then the record says so.
func TestKeysOfATemplateThatLostAll(t *testing.T) {
	pod := podWith("a:1")
	pod.Annotations = map[string]string{"a": "1", tappv1.AnnotationTemplateKeys: `{"annotations":["a"]}`}
	want := podWith("a:1")
	want.Annotations = map[string]string{tappv1.AnnotationTemplateKeys: "{}"}
	patch, err := RelabelPatch(pod, want, someHashes)
	if err != nil {
		t.Fatal(err)
	}
	if next := applyPatch(t, pod, patch); len(next.Annotations) != 1 || next.Annotations[tappv1.AnnotationTemplateKeys] != "{}" {
		t.Errorf("%v", next.Annotations)
	}
	// Nothing is known of what a malformed list said.
	pod.Annotations[tappv1.AnnotationTemplateKeys] = "{"
	if patch, err = RelabelPatch(pod, want, someHashes); err != nil {
		t.Fatal(err)
	}
	if next := applyPatch(t, pod, patch); len(next.Annotations) != 2 || next.Annotations["a"] != "1" {
		t.Errorf("%v", next.Annotations)
	}
}

// TestPatchesNameTheUID, so that they fail on another pod of the same name, and the
// version that they hold for.
func TestPatchesNameTheUID(t *testing.T) {
	relabel, err := RelabelPatch(podWith("a:1"), podWith("a:1"), someHashes)
	if err != nil {
		t.Fatal(err)
	}
	inPlace, err := Update{Pod: podWith("a:1"), Want: podWith("a:2"), Hashes: someHashes, Now: patchTime, ResourceVersion: "50"}.Patch()
	if err != nil {
		t.Fatal(err)
	}
	for n, patch := range [][]byte{relabel, inPlace, GatePatch(Target{"uid-1", "50"}, true, "", "", patchTime)} {
		var p struct {
			Metadata struct{ UID, ResourceVersion string }
		}
		version := "50"
		if n == 0 {
			version = ""
		}
		if err := json.Unmarshal(patch, &p); err != nil || p.Metadata.UID != "uid-1" || p.Metadata.ResourceVersion != version {
			t.Errorf("%s, %v", patch, err)
		}
	}
}

func TestGate(t *testing.T) {
	pod := podWith("a:1")
	if HasGate(pod) || GateOpen(pod) {
		t.Error("a pod without the gate has one")
	}
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "other"}, {ConditionType: tappv1.GateInPlaceUpdate}}
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(patchTime)}
	pod.Status.Conditions = []corev1.PodCondition{ready}
	if _, closed := GateClosedSince(pod); !HasGate(pod) || GateOpen(pod) || closed {
		t.Error("a gate without a condition is neither open nor was it closed")
	}
	for _, open := range []bool{true, false, true} {
		pod = applyPatch(t, pod, GatePatch(Target{UID: pod.UID}, open, "Because", "of this", patchTime))
		since, closed := GateClosedSince(pod)
		if GateOpen(pod) != open || closed == open || !open && !since.Equal(patchTime) {
			t.Errorf("open %t, closed %t since %v", GateOpen(pod), closed, since)
		}
		if len(pod.Status.Conditions) != 2 || !podCondition(pod, corev1.PodReady).LastTransitionTime.Time.Equal(patchTime) || podCondition(pod, corev1.PodReady).Status != corev1.ConditionTrue {
			t.Errorf("the kubelet's condition changed: %v", pod.Status.Conditions)
		}
		if c := gateCondition(pod); c.Reason != "Because" || c.Message != "of this" {
			t.Errorf("%v", c)
		}
	}
	if got := string(GatePatch(Target{}, true, "PodCreated", "why", patchTime)); got != `{"status":{"conditions":[{"type":"tkestack.io/InPlaceUpdate","status":"True","lastTransitionTime":"2026-01-02T03:04:05Z","reason":"PodCreated","message":"why"}]}}` {
		t.Error(got)
	}
}

func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// TestStampTakesNothingAway: a pod whose hash was lost gets it back, and keeps the labels
// and annotations of its template, and what others made of them.
func TestStampTakesNothingAway(t *testing.T) {
	record := `{"labels":["app"],"annotations":["scrape"]}`
	pod := podWith("a:1")
	pod.Labels = map[string]string{"app": "x", "foreign": "1", tappv1.LabelTemplateHash: "somebody's"}
	pod.Annotations = map[string]string{"scrape": "15020", tappv1.AnnotationTemplateKeys: record}
	want := podWith("a:1")
	want.Labels = map[string]string{"app": "x", tappv1.LabelInstanceID: "0"}
	want.Annotations = map[string]string{"scrape": "8080", tappv1.AnnotationTemplateKeys: record}
	patch, err := StampPatch(pod, want, someHashes)
	if err != nil {
		t.Fatal(err)
	}
	next := applyPatch(t, pod, patch)
	labels := map[string]string{"app": "x", "foreign": "1", tappv1.LabelInstanceID: "0", tappv1.LabelTemplateHash: someHashes.Template, tappv1.LabelUniqHash: someHashes.Uniq}
	if !maps.Equal(next.Labels, labels) || !maps.Equal(next.Annotations, pod.Annotations) {
		t.Errorf("%v\n%v", next.Labels, next.Annotations)
	}
}
