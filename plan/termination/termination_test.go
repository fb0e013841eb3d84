package termination

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

var (
	data = Claim{1, "data-web-1", "u1", "pv-1"}
	logs = Claim{1, "logs-web-1", "u2", ""}
)

// TestHolding: a claim keeps the pod until its very UID is in the annotation.
func TestHolding(t *testing.T) {
	for value, want := range map[string]string{
		"": "u1,u2", "u1": "u2", "u2": "u1", "u1,u2": "", "u2,u1": "", "u": "u1,u2", "u11": "u1,u2", "data-web-1": "u1,u2", "true": "u1,u2", "u3,u1": "u2",
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{tappv1.AnnotationClaimMayGo: value}}}
		if got := Release(Holding(pod, []Claim{data, logs})); got != want {
			t.Errorf("with %q hold %q, want %q", value, got, want)
		}
	}
	if got := Holding(&corev1.Pod{}, nil); got != nil {
		t.Errorf("without claims hold %v", got)
	}
	both := []Claim{data, logs}
	Holding(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{tappv1.AnnotationClaimMayGo: "u1"}}}, both)
	if both[0] != data || both[1] != logs {
		t.Errorf("the claims have changed: %v", both)
	}
}

// TestTold: what the condition says is read again, without the volumes.
func TestTold(t *testing.T) {
	text := data.String() + "; " + logs.String() + "; and 3 more"
	for is, want := range map[metav1.ConditionStatus]string{
		metav1.ConditionTrue:  "[claim data-web-1 (UID u1) of instance 1 is being deleted, and goes with its pod claim logs-web-1 (UID u2) of instance 1 is being deleted, and goes with its pod]",
		metav1.ConditionFalse: "[]",
	} {
		if got := fmt.Sprint(Told([]metav1.Condition{{Type: tappv1.ConditionClaimTerminating, Status: is, Message: text}})); got != want {
			t.Errorf("%s: %s, want %s", is, got, want)
		}
	}
	if got := Told(nil); got != nil {
		t.Errorf("of no condition %v", got)
	}
}

// TestClaims: in order, however they were found.
func TestClaims(t *testing.T) {
	var l Claims
	if l.All() != nil || l.Of(1) != nil {
		t.Error("an empty one has claims")
	}
	for _, c := range []Claim{{10, "data-web-10", "u4", ""}, logs, {0, "data-web-0", "u3", ""}, data} {
		l.Add(c)
	}
	if got := Release(l.All()); got != "u3,u1,u2,u4" {
		t.Errorf("all are %s", got)
	}
	if got := Release(l.Of(1)); got != "u1,u2" {
		t.Errorf("of instance 1 are %s", got)
	}
}

// TestWhy: the way on stands in the sentence.
func TestWhy(t *testing.T) {
	const want = "its claim data-web-1 is being deleted, and would go with its pod, which stays; kubectl tapp kill web 1 --now lets both go, and so does the annotation tkestack.io/claim-may-go=u1 of the pod"
	if got := Why([]Claim{data}, "kill", "web"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	const saved = "claim data-web-1 (UID u1) of instance 1 is being deleted, and goes with its pod: to save its volume, set persistentVolumeReclaimPolicy of PersistentVolume pv-1 to Retain"
	if got := data.String(); got != saved {
		t.Errorf("got  %s\nwant %s", got, saved)
	}
}
