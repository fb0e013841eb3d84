package tapp

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/controller/cache"
	"tkestack.io/tapp/controller/write"
	plan "tkestack.io/tapp/plan/tapp"
)

const pods = "/api/v1/namespaces/ns/pods"

// TestWrites: what each operation asks of the API server, and what it makes of
// the answer.
func TestWrites(t *testing.T) {
	t1 := someTApp("a")
	mine := func(version string) *corev1.Pod { return ownedBy(somePod("a-1", "u1", version), "TApp", "a", "uid-a") }
	exists := func(pod *corev1.Pod) func(method, path, body string) (int, any) {
		return func(method, _, _ string) (int, any) {
			if method == http.MethodPost {
				return apiError(409, metav1.StatusReasonAlreadyExists, `pods "a-1" already exists`)
			}
			return 200, pod
		}
	}
	answer := func(code int, object any) func(method, path, body string) (int, any) {
		return func(string, string, string) (int, any) { return code, object }
	}
	fails := func(code int, reason metav1.StatusReason, message string, causes ...metav1.StatusCause) func(method, path, body string) (int, any) {
		return func(string, string, string) (int, any) { return apiError(code, reason, message, causes...) }
	}
	unlabelled := mine("77")
	unlabelled.Labels = nil
	for name, c := range map[string]struct {
		action plan.Action
		answer func(method, path, body string) (int, any)
		asks   []string // prefixes
		err    string   // "" none, "stale", or a part of it
		mark   string   // of pods
		claim  string   // mark of claims
	}{
		"create": {plan.Action{Op: plan.OpCreate, Pod: mine("")}, answer(201, mine("50")), []string{"POST " + pods}, "", "50", ""},
		"create and open the gate": {plan.Action{Op: plan.OpCreate, Pod: mine(""), Status: []byte(`{"status":1}`)}, answer(201, mine("50")),
			[]string{"POST " + pods, `PATCH ` + pods + `/a-1/status {"status":1}`}, "", "50", ""},
		"create, and the gate fails": {plan.Action{Op: plan.OpCreate, Pod: mine(""), Status: []byte(`{"status":1}`)},
			func(method, _, _ string) (int, any) {
				if method == http.MethodPatch {
					return apiError(500, metav1.StatusReasonInternalError, "oh")
				}
				return 201, mine("50")
			}, []string{"POST " + pods, "PATCH " + pods + "/a-1/status"}, "", "50", ""},
		"create what is there and mine":     {plan.Action{Op: plan.OpCreate, Pod: mine("")}, exists(mine("70")), []string{"POST", "GET " + pods + "/a-1"}, "stale", "70", ""},
		"create what is another's":          {plan.Action{Op: plan.OpCreate, Pod: mine("")}, exists(ownedBy(somePod("a-1", "u", "70"), "StatefulSet", "db", "uid-db")), []string{"POST", "GET"}, "belongs to StatefulSet db (uid uid-db)", "", ""},
		"create what is an older TApp's":    {plan.Action{Op: plan.OpCreate, Pod: mine("")}, exists(ownedBy(somePod("a-1", "u", "70"), "TApp", "a", "uid-old")), []string{"POST", "GET"}, "belongs to TApp a (uid uid-old)", "", ""},
		"create what is nobody's":           {plan.Action{Op: plan.OpCreate, Pod: mine("")}, exists(somePod("a-1", "u", "70")), []string{"POST", "GET"}, "belongs to nobody", "", ""},
		"create what has lost its label":    {plan.Action{Op: plan.OpCreate, Pod: mine("")}, exists(unlabelled), []string{"POST", "GET"}, "has lost its label", "", ""},
		"create where a quota is exhausted": {plan.Action{Op: plan.OpCreate, Pod: mine("")}, fails(403, metav1.StatusReasonForbidden, "exceeded quota"), []string{"POST"}, "exceeded quota", "", ""},
		"delete":                            {plan.Action{Op: plan.OpDelete, Pod: mine("50")}, answer(200, mine("60")), []string{`DELETE ` + pods + `/a-1 {"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"u1"}}`}, "", "", ""},
		"delete what is gone":               {plan.Action{Op: plan.OpDelete, Pod: mine("50")}, fails(404, metav1.StatusReasonNotFound, "gone"), []string{"DELETE"}, "", "", ""},
		"delete what is another by now":     {plan.Action{Op: plan.OpDelete, Pod: mine("50")}, fails(409, metav1.StatusReasonConflict, "uid"), []string{"DELETE"}, "stale", "", ""},
		"delete by force": {plan.Action{Op: plan.OpForceDelete, Pod: mine("50"), ResourceVersion: "50"}, answer(200, mine("60")),
			[]string{`DELETE ` + pods + `/a-1 {"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0,"preconditions":{"uid":"u1","resourceVersion":"50"}}`}, "", "", ""},
		"replace": {plan.Action{Op: plan.OpReplace, Pod: mine(""), Old: ownedBy(somePod("a-1", "u0", "40"), "TApp", "a", "uid-a")}, answer(201, mine("50")),
			[]string{`DELETE ` + pods + `/a-1 {"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"u0"}}`, "POST " + pods}, "", "50", ""},
		"replace, and the deletion fails": {plan.Action{Op: plan.OpReplace, Pod: mine(""), Old: mine("40")}, fails(403, metav1.StatusReasonForbidden, "no"), []string{"DELETE"}, "no", "", ""},
		"drain":                           {plan.Action{Op: plan.OpDrain, Pod: mine("50"), Status: []byte(`{"a":1}`)}, answer(200, mine("60")), []string{`PATCH ` + pods + `/a-1/status {"a":1}`}, "", "60", ""},
		"update in place":                 {plan.Action{Op: plan.OpUpdateInPlace, Pod: mine("50"), Patch: []byte(`{"a":1}`)}, answer(200, mine("60")), []string{`PATCH ` + pods + `/a-1 {"a":1}`}, "", "60", ""},
		"resize":                          {plan.Action{Op: plan.OpResize, Pod: mine("50"), Patch: []byte(`{"a":1}`)}, answer(200, mine("60")), []string{`PATCH ` + pods + `/a-1/resize {"a":1}`}, "", "60", ""},
		"resize beyond the node": {plan.Action{Op: plan.OpResize, Pod: mine("50"), Patch: []byte(`{"a":1}`), Refused: []byte(`{"a":2}`)}, func(_, path, _ string) (int, any) {
			if strings.HasSuffix(path, "/resize") {
				return apiError(403, metav1.StatusReasonForbidden, "node didn't have enough", metav1.StatusCause{Type: "NodeCapacity"})
			}
			return 200, mine("60")
		}, []string{`PATCH ` + pods + `/a-1/resize {"a":1}`, `PATCH ` + pods + `/a-1 {"a":2}`}, "", "60", ""},
		"resize where quota is short": {plan.Action{Op: plan.OpResize, Pod: mine("50"), Patch: []byte(`{"a":1}`), Refused: []byte(`{"a":2}`)},
			fails(403, metav1.StatusReasonForbidden, "exceeded quota"), []string{"PATCH"}, "exceeded quota", "", ""},
		"update what is gone": {plan.Action{Op: plan.OpUpdateInPlace, Pod: mine("50"), Patch: []byte(`{}`)}, fails(404, metav1.StatusReasonNotFound, "gone"), []string{"PATCH"}, "stale", "", ""},
		"update what is another by now": {plan.Action{Op: plan.OpRelabel, Pod: mine("50"), Patch: []byte(`{}`)},
			fails(422, metav1.StatusReasonInvalid, "uid", metav1.StatusCause{Field: "metadata.uid"}), []string{"PATCH"}, "stale", "", ""},
		"update to what is invalid": {plan.Action{Op: plan.OpUpdateInPlace, Pod: mine("50"), Patch: []byte(`{}`)},
			fails(422, metav1.StatusReasonInvalid, "image", metav1.StatusCause{Field: "spec.containers[0].image"}), []string{"PATCH"}, "image", "", ""},
		"release": {plan.Action{Op: plan.OpRelease, Pod: mine("50"), Patch: []byte(`{"a":1}`)}, answer(200, mine("60")), []string{`PATCH ` + pods + `/a-1 {"a":1}`}, "", "60", ""},
		"create a claim": {plan.Action{Op: plan.OpCreateClaim, ID: "1", Claim: someClaim("d-a-1", "")}, answer(201, someClaim("d-a-1", "30")),
			[]string{"POST /api/v1/namespaces/ns/persistentvolumeclaims"}, "", "", "30"},
		"update a claim": {plan.Action{Op: plan.OpUpdateClaim, ID: "1", Claim: someClaim("d-a-1", "30"), Patch: []byte(`{"a":1}`)}, answer(200, someClaim("d-a-1", "31")),
			[]string{`PATCH /api/v1/namespaces/ns/persistentvolumeclaims/d-a-1 {"a":1}`}, "", "", "31"},
		"delete a claim": {plan.Action{Op: plan.OpDeleteClaim, ID: "1", Claim: someClaim("d-a-1", "30")}, answer(200, someClaim("d-a-1", "31")),
			[]string{`DELETE /api/v1/namespaces/ns/persistentvolumeclaims/d-a-1 {"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"","resourceVersion":"30"}}`}, "", "", ""},
		"delete a claim that has changed": {plan.Action{Op: plan.OpDeleteClaim, ID: "1", Claim: someClaim("d-a-1", "30")}, fails(409, metav1.StatusReasonConflict, "version"),
			[]string{"DELETE"}, "stale", "", ""},
		"record a revision": {plan.Action{Op: plan.OpCreateRevision, Revision: someRevision("a-1")}, answer(201, someRevision("a-1")),
			[]string{"POST " + revisions}, "", "", ""},
		"record a revision that is there": {plan.Action{Op: plan.OpCreateRevision, Revision: someRevision("a-1")}, revisionExists(someRevision("a-1")),
			[]string{"POST", "GET " + revisions + "/a-1"}, "", "", ""},
		"record a revision that is another's": {plan.Action{Op: plan.OpCreateRevision, Revision: someRevision("a-1")}, revisionExists(&appsv1.ControllerRevision{
			TypeMeta: metav1.TypeMeta{Kind: "ControllerRevision", APIVersion: "apps/v1"}, ObjectMeta: metav1.ObjectMeta{Name: "a-1"}}),
			[]string{"POST", "GET"}, "the revision a-1 exists already, and does not belong to the TApp; delete it to make room", "", ""},
		"update a revision": {plan.Action{Op: plan.OpUpdateRevision, Revision: someRevision("a-1"), Patch: []byte(`{"revision":3}`)}, answer(200, someRevision("a-1")),
			[]string{"PATCH " + revisions + `/a-1 {"revision":3}`}, "", "", ""},
		"delete a revision": {plan.Action{Op: plan.OpDeleteRevision, Revision: someRevision("a-1")}, fails(404, metav1.StatusReasonNotFound, "gone"),
			[]string{"DELETE " + revisions + `/a-1 {"kind":"DeleteOptions","apiVersion":"apps/v1","preconditions":{"uid":"r1"}}`}, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &stub{answer: c.answer}
			controller := s.newController(t)
			var o object
			err := controller.operations[c.action.Op].write(t.Context(), controller.newWriter(t.Context(), t1, &o), &c.action)
			switch {
			case (err == nil) != (c.err == ""), err != nil && !strings.Contains(err.Error(), c.err):
				t.Errorf("got error %v, want %q", err, c.err)
			case c.err == "stale" && !strings.Contains(err.Error(), write.ErrStale.Error()):
				t.Errorf("got error %v, want a stale view", err)
			}
			if asks := s.asked(); len(asks) != len(c.asks) || slices.ContainsFunc(asks, func(a string) bool {
				return !strings.HasPrefix(a, c.asks[slices.Index(asks, a)])
			}) {
				t.Errorf("asked\n%s\nwant\n%s", strings.Join(asks, "\n"), strings.Join(c.asks, "\n"))
			}
			if wrote := o.guard.Written(); wrote[storePods] != c.mark || wrote[storeClaims] != c.claim {
				t.Errorf("marks %v, want %q and %q", wrote, c.mark, c.claim)
			}
		})
	}
}

// TestDeletionsAreNoted: the next plan waits until the caches show what was deleted,
// lest it count the pod as available, and take another one.
func TestDeletionsAreNoted(t *testing.T) {
	pod, old := ownedBy(somePod("a-1", "u1", "50"), "TApp", "a", "uid-a"), ownedBy(somePod("a-1", "u0", "40"), "TApp", "a", "uid-a")
	for name, c := range map[string]struct {
		action plan.Action
		code   int
		want   []cache.Deletion
	}{
		"delete":                        {plan.Action{Op: plan.OpDelete, Pod: pod}, 200, []cache.Deletion{{Store: storePods, Key: keyOf("a-1"), UID: "u1"}}},
		"delete what is gone":           {plan.Action{Op: plan.OpDelete, Pod: pod}, 404, []cache.Deletion{{Store: storePods, Key: keyOf("a-1"), UID: "u1"}}},
		"delete what is another by now": {plan.Action{Op: plan.OpDelete, Pod: pod}, 409, nil},
		"delete by force":               {plan.Action{Op: plan.OpForceDelete, Pod: pod}, 200, []cache.Deletion{{Store: storePods, Key: keyOf("a-1"), UID: "u1", Force: true}}},
		"replace":                       {plan.Action{Op: plan.OpReplace, Pod: pod, Old: old}, 200, []cache.Deletion{{Store: storePods, Key: keyOf("a-1"), UID: "u0"}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &stub{answer: func(string, string, string) (int, any) {
				switch c.code {
				case 404:
					return apiError(404, metav1.StatusReasonNotFound, "gone")
				case 409:
					return apiError(409, metav1.StatusReasonConflict, "uid")
				}
				return 200, pod
			}}
			controller := s.newController(t)
			var o object
			if err := controller.operations[c.action.Op].write(t.Context(), controller.newWriter(t.Context(), someTApp("a"), &o), &c.action); (err != nil) != (c.code == 409) {
				t.Errorf("got error %v", err)
			}
			if !slices.Equal(o.guard.Pending(), c.want) {
				t.Errorf("noted %+v, want %+v", o.guard.Pending(), c.want)
			}
		})
	}
}

const revisions = "/apis/apps/v1/namespaces/ns/controllerrevisions"

func someRevision(name string) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{TypeMeta: metav1.TypeMeta{Kind: "ControllerRevision", APIVersion: "apps/v1"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "r1", ResourceVersion: "30",
			OwnerReferences: []metav1.OwnerReference{{Kind: "TApp", Name: "a", UID: "uid-a", Controller: new(true)}}}}
}

func revisionExists(is *appsv1.ControllerRevision) func(string, string, string) (int, any) {
	return func(method, _, _ string) (int, any) {
		if method == http.MethodPost {
			return apiError(409, metav1.StatusReasonAlreadyExists, "exists")
		}
		return 200, is
	}
}

func someClaim(name, version string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{TypeMeta: metav1.TypeMeta{Kind: "PersistentVolumeClaim", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, ResourceVersion: version}}
}

func TestEveryOperationIsKnown(t *testing.T) {
	known := operations()
	for _, op := range []plan.Op{plan.OpCreate, plan.OpReplace, plan.OpCreateClaim, plan.OpDelete, plan.OpForceDelete, plan.OpDrain,
		plan.OpUpdateInPlace, plan.OpUndrain, plan.OpRelabel, plan.OpAdopt, plan.OpRelease, plan.OpUpdateClaim, plan.OpDeleteClaim, plan.OpResize,
		plan.OpCreateRevision, plan.OpUpdateRevision, plan.OpDeleteRevision} {
		if known[op].write == nil || known[op].verb == "" || known[op].failure == "" {
			t.Errorf("%s is missing in the table", op)
		}
	}
}

// TestAdoption: the TApp is read live, once a sync, and must be the same and stay.
func TestAdoption(t *testing.T) {
	dying, other := someTApp("a"), someTApp("a")
	dying.DeletionTimestamp = &metav1.Time{}
	other.UID = "other"
	for name, c := range map[string]struct {
		live any
		code int
		asks int // besides the read
	}{
		"still there":   {someTApp("a"), 200, 3},
		"being deleted": {map[string]any{"metadata": map[string]any{"name": "a", "uid": "uid-a", "deletionTimestamp": "2026-01-01T00:00:00Z"}}, 200, 0},
		"another one":   {other, 200, 0},
		"gone":          {nil, 404, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := &stub{answer: func(method, _, _ string) (int, any) {
				if method == http.MethodPatch {
					return 200, somePod("a-1", "u1", "60")
				}
				if c.code == 404 {
					return apiError(404, metav1.StatusReasonNotFound, "gone")
				}
				return c.code, c.live
			}}
			controller := s.newController(t)
			var actions []plan.Action
			for n := range 3 {
				actions = append(actions, plan.Action{Op: plan.OpAdopt, ID: fmt.Sprint(n), Pod: somePod(fmt.Sprint("a-", n), "u", "1"), Patch: []byte(`{}`)})
			}
			w := controller.newWriter(t.Context(), someTApp("a"), &object{})
			for i := range actions {
				err := adopt(t.Context(), w, &actions[i])
				if (err == nil) != (c.asks > 0) || err != nil && !errors.Is(err, write.ErrStale) {
					t.Errorf("got error %v", err)
				}
			}
			if got := len(s.asked()); got != c.asks+1 {
				t.Errorf("asked %d times, want %d: %s", got, c.asks+1, s.asked())
			}
		})
	}
}
