package tapp

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	plan "tkestack.io/tapp/plan/tapp"
)

// TestForUpdate: what is known of pods that this process deleted for an update, from the
// deletion to the next pod.
func TestForUpdate(t *testing.T) {
	var s idSet
	want := func(about string, ids ...string) {
		t.Helper()
		if got := slices.Sorted(maps.Keys(s.ids)); !slices.Equal(got, ids) {
			t.Errorf("%s: %q, want %q", about, got, ids)
		}
	}
	for _, id := range []string{"0", "1", "2", "10"} {
		s.note(&plan.Action{Op: plan.OpDelete, ID: id, ForUpdate: true})
	}
	s.note(&plan.Action{Op: plan.OpDelete, ID: "3"})
	s.note(&plan.Action{Op: plan.OpUndrain, ID: "0"})
	want("deleted", "0", "1", "10", "2")
	s.note(&plan.Action{Op: plan.OpCreate, ID: "2"})
	want("created", "0", "1", "10")
	dying := somePod("a-1", "u1", "1")
	dying.DeletionTimestamp = &metav1.Time{}
	s.followed([]*corev1.Pod{dying, somePod("a-10", "u2", "2")})
	want("its next pod is there", "0", "1")
	s.keep([]plan.Instance{{ID: "0", Desired: true}, {ID: "1"}, {ID: "5", Desired: true}})
	want("one is not to run any more", "0")
}
