package app

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appv1 "tkestack.io/tapp/crd/app/v1"
)

// TestClaimsReady: a stored status misleads only if it is about this generation.
func TestClaimsReady(t *testing.T) {
	a := &appv1.App{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	a.Status.Conditions = []metav1.Condition{{Type: appv1.ConditionReady, Status: metav1.ConditionTrue}}
	for observed, want := range map[int64]bool{-1: false, 1: false, 2: true} {
		a.Status.ObservedGeneration = observed
		if got := claimsReady(a); got != want {
			t.Errorf("observed %d: %v", observed, got)
		}
	}
}
