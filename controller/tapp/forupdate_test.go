package tapp

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	plan "tkestack.io/tapp/plan/tapp"
)

// TestForUpdate: what is known of pods that this process deleted for an update, from the
// deletion to the next pod.
func TestForUpdate(t *testing.T) {
	var s forUpdate
	want := func(about string, ids ...string) {
		t.Helper()
		if got := slices.Sorted(maps.Keys(s.ids())); !slices.Equal(got, ids) {
			t.Errorf("%s: %q, want %q", about, got, ids)
		}
	}
	for _, id := range []string{"0", "1", "2", "10"} {
		s.deleted(id, types.UID("u"+id))
	}
	want("deleted", "0", "1", "10", "2")
	s.created("2")
	want("created", "0", "1", "10")
	dying := somePod("a-1", "u1", "1")
	dying.DeletionTimestamp = &metav1.Time{}
	s.followed([]*corev1.Pod{dying, somePod("a-1", "u1", "1"), somePod("a-10", "u2", "2")})
	want("its next pod is there", "0", "1")
	s.keep([]plan.Instance{{ID: "0", Desired: true}, {ID: "1"}, {ID: "5", Desired: true}})
	want("one is not to run any more", "0")
}

// TestForUpdateNoted: a pod that was gone before it was deleted for its update was lost, and
// one that goes for another reason is no hint either.
func TestForUpdateNoted(t *testing.T) {
	deletes := func(forUpdate bool) plan.Action {
		return plan.Action{Op: plan.OpDelete, ID: "1", Pod: somePod("a-1", "u1", "1"), ForUpdate: forUpdate}
	}
	for name, c := range map[string]struct {
		action plan.Action
		code   int
		had    bool
		want   bool
	}{
		"deleted for its update": {action: deletes(true), code: 200, want: true},
		"gone before":            {action: deletes(true), code: 404},
		"another one by now":     {action: deletes(true), code: 409},
		"refused":                {action: deletes(true), code: 403},
		"scaled down":            {action: deletes(false), code: 200},
		"created":                {action: plan.Action{Op: plan.OpCreate, ID: "1", Pod: somePod("a-1", "", "")}, code: 201, had: true},
		"creation refused":       {action: plan.Action{Op: plan.OpCreate, ID: "1", Pod: somePod("a-1", "", "")}, code: 403, had: true, want: true},
	} {
		s := &stub{answer: func(string, string, string) (int, any) {
			reasons := map[int]metav1.StatusReason{403: metav1.StatusReasonForbidden, 404: metav1.StatusReasonNotFound, 409: metav1.StatusReasonConflict}
			if reason, fails := reasons[c.code]; fails {
				return apiError(c.code, reason, "no")
			}
			return c.code, somePod("a-1", "u1", "2")
		}}
		controller, o := s.newController(t), &object{}
		if c.had {
			o.forUpdate.deleted("1", "u0")
		}
		app := someTApp("a")
		_ = controller.tapps.GetStore().Add(app)
		controller.apply(t.Context(), app, o, []plan.Action{c.action})
		if _, got := o.forUpdate.ids()["1"]; got != c.want {
			t.Errorf("%s: noted: %t", name, got)
		}
	}
}
