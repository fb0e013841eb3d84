package tapp

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/refusal"
)

// TestRoom: while creations are refused, what the pod of a lower id leaves is not given to
// a higher one. Instance 2 of 3 has no pod.
func TestRoom(t *testing.T) {
	const waits = "WaitsForRoom: creations are refused, and instance 1, whose pod goes, comes first"
	for name, c := range map[string]struct {
		pod     podStory // of instance 1
		refused string   // the reason of the refusal that is told
		want    string   // of instance 2
	}{
		"a lower one goes":                        {podStory{Dying: "in 20s"}, refusal.FailedCreate, waits},
		"it should be gone":                       {podStory{Dying: "14s ago"}, refusal.FailedCreate, waits},
		"it does not go":                          {podStory{Dying: "15s ago"}, refusal.FailedCreate, "Create"},
		"it failed, and waits":                    {podStory{Phase: corev1.PodFailed, Ended: "1s"}, refusal.FailedCreate, waits},
		"it failed, and the next one is its turn": {podStory{Phase: corev1.PodFailed, Ended: "1h"}, refusal.FailedCreate, "Create"},
		"it runs":                                 {podStory{}, refusal.FailedCreate, "Create"},
		"nothing is refused":                      {podStory{Dying: "in 20s"}, "", "Create"},
		"an update is refused":                    {podStory{Dying: "in 20s"}, refusal.FailedUpdate, "Create"},
	} {
		t.Run(name, func(t *testing.T) {
			c.pod.IDs = "1"
			in := story(3, podStory{IDs: "0"}, c.pod).input(t)
			if c.refused != "" {
				in.TApp.Status.Conditions = []metav1.Condition{{Type: tappv1.ConditionReplicaFailure, Status: metav1.ConditionTrue, Reason: c.refused}}
			}
			p := Compute(in)
			judge(t, in, p)
			got := strings.Trim(p.Instances[2].Reason+": "+p.Instances[2].Why, ": ")
			for _, a := range p.Actions {
				if a.ID == "2" {
					got += string(a.Op)
				}
			}
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if c.want == waits && p.Wait == 0 {
				t.Error("no other look")
			}
		})
	}
}
