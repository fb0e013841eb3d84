package tapp

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/controller/cache"
	plan "tkestack.io/tapp/plan/tapp"
)

// TestLookAfter: a write whose answer is lost may have been done. What the pod is then is
// what the caches have to show before the next plan.
func TestLookAfter(t *testing.T) {
	pod := ownedBy(somePod("a-1", "u1", "50"), "TApp", "a", "uid-a")
	gone := []cache.Deletion{{Store: storePods, Key: keyOf("a-1"), UID: "u1"}}
	deletes, drains := plan.Action{Op: plan.OpDelete, ID: "1", Pod: pod, ForUpdate: true}, plan.Action{Op: plan.OpDrain, ID: "1", Pod: pod, Status: []byte(`{}`)}
	for name, c := range map[string]struct {
		action plan.Action
		code   int // of the write
		reason metav1.StatusReason
		get    int // of the look afterwards; 0: there is none
		mark   string
		noted  []cache.Deletion
	}{
		"a deletion, and it is there": {deletes, 504, metav1.StatusReasonTimeout, 200, "51", nil},
		"a deletion, and it is gone":  {deletes, 504, metav1.StatusReasonTimeout, 404, "", gone},
		"a deletion, and no look":     {deletes, 504, metav1.StatusReasonTimeout, 503, "", nil},
		"a drain":                     {drains, 504, metav1.StatusReasonTimeout, 200, "51", nil},
		"a refused drain":             {drains, 403, metav1.StatusReasonForbidden, 0, "", nil},
		"an API server that is away":  {drains, 503, metav1.StatusReasonServiceUnavailable, 0, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := &stub{answer: func(method, _, _ string) (int, any) {
				switch {
				case method != "GET":
					return apiError(c.code, c.reason, "no answer")
				case c.get == 200:
					return 200, ownedBy(somePod("a-1", "u1", "51"), "TApp", "a", "uid-a")
				case c.get == 404:
					return apiError(404, metav1.StatusReasonNotFound, "gone")
				}
				return apiError(503, metav1.StatusReasonServiceUnavailable, "away")
			}}
			controller := s.newController(t)
			var o object
			if err := controller.operations[c.action.Op].write(t.Context(), controller.newWriter(t.Context(), someTApp("a"), &o), &c.action); err == nil {
				t.Error("no error")
			}
			if got := o.guard.Written()[storePods]; got != c.mark {
				t.Errorf("mark %q, want %q", got, c.mark)
			}
			if !slices.Equal(o.guard.Pending(), c.noted) {
				t.Errorf("noted %+v, want %+v", o.guard.Pending(), c.noted)
			}
			if asks := len(s.asked()); asks != 1+min(c.get, 1) {
				t.Errorf("%d requests", asks)
			}
			if len(o.forUpdate.ids()) > 0 {
				t.Error("it is taken for a deletion of ours")
			}
		})
	}
}
