package tapp

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tkestack.io/tapp/controller/cache"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/refusal"
	plan "tkestack.io/tapp/plan/tapp"
)

// TestRefusal: what was refused is noted by instance and operation; an API server that is
// away has refused nothing, and a webhook that cannot be called has.
func TestRefusal(t *testing.T) {
	at := time.Unix(1_000_000, 0)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a-1", errors.New("no"))
	for name, c := range map[string]struct {
		op   plan.Op
		err  error
		want string
	}{
		"a creation":                        {plan.OpCreate, forbidden, `Create 1: pods "a-<id>" is forbidden: no`},
		"a replacement":                     {plan.OpReplace, forbidden, `Create 1: pods "a-<id>" is forbidden: no`},
		"the deletion before it":            {plan.OpReplace, &partError{plan.OpDelete, forbidden}, `Delete 1: pods "a-<id>" is forbidden: no`},
		"a deletion":                        {plan.OpDelete, forbidden, `Delete 1: pods "a-<id>" is forbidden: no`},
		"a status":                          {plan.OpDrain, forbidden, `Drain 1: pods "a-<id>" is forbidden: no`},
		"a patch by validation":             {plan.OpUpdateInPlace, apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a-1", nil), `UpdateInPlace 1: Pod "a-<id>" is invalid`},
		"by a webhook that is away":         {plan.OpUpdateInPlace, apierrors.NewInternalError(errors.New(`failed calling webhook "w": failed to call webhook: EOF`)), `UpdateInPlace 1: Internal error occurred: failed calling webhook "w": failed to call webhook: EOF`},
		"by a webhook that answers rot":     {plan.OpResize, apierrors.NewInternalError(errors.New(`admission webhook "w" attempted to modify the object`)), `Resize 1: Internal error occurred: admission webhook "w" attempted to modify the object`},
		"etcd is away":                      {plan.OpCreate, apierrors.NewInternalError(errors.New("etcd")), ""},
		"an API server that is busy":        {plan.OpDelete, apierrors.NewTooManyRequests("slow down", 1), ""},
		"a revision is no instance's":       {plan.OpCreateRevision, forbidden, ""},
		"nor are templates that are unused": {plan.OpPruneTemplates, forbidden, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := &plan.Action{Op: c.op, ID: "1", Pod: somePod("a-1", "", "")}
			if c.op == plan.OpCreateRevision || c.op == plan.OpPruneTemplates {
				a.ID = ""
			}
			r := since(nil, at)
			r.note(failedPart(a, c.err), a, c.err)
			if got := refusals(r.set); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func refusals(s refusal.Set) string {
	var out []string
	for k, r := range s {
		out = append(out, fmt.Sprintf("%s %d: %s", k.Op, k.ID, r.Words))
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}

// TestRefusalsOfAPlan: what a plan is refused is known to the next one, until it comes
// through. What was not tried stays as it was. The planner's own set is left alone.
func TestRefusalsOfAPlan(t *testing.T) {
	denied := map[string]bool{"DELETE a-0": true, "PATCH a-1": true, "POST a-2": true, "DELETE a-4": true}
	s := &stub{answer: func(method, path, body string) (int, any) {
		name := path[strings.LastIndex(path, "/")+1:]
		if method == "POST" {
			name = "a-2"
		}
		if denied[method+" "+name] {
			return apiError(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, fmt.Sprintf("pods %q is forbidden: ValidatingAdmissionPolicy 'p' denied request: no", name))
		}
		return 200, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "5"}}
	}}
	c := s.newController(t)
	app := someTApp("a")
	_ = c.tapps.GetStore().Add(app)
	pod := func(n int) *corev1.Pod { return somePod(fmt.Sprint("a-", n), "", "") }
	actions := []plan.Action{
		{Op: plan.OpDelete, ID: "0", Pod: pod(0)},
		{Op: plan.OpUpdateInPlace, ID: "1", Pod: pod(1), Patch: []byte("{}")},
		{Op: plan.OpCreate, ID: "2", Pod: pod(2)},
		{Op: plan.OpDelete, ID: "3", Pod: pod(3)},
		{Op: plan.OpReplace, ID: "4", Pod: pod(4), Old: pod(4)},
	}
	const no = `: pods "a-<id>" is forbidden: ValidatingAdmissionPolicy 'p' denied request: no`
	o := &object{refused: refusal.Set{{ID: 3, Op: "Delete"}: {Words: "before"}, {ID: 9, Op: "Drain"}: {Words: "not tried"}}}
	before := maps.Clone(o.refused)
	planned := o.refused
	c.apply(t.Context(), app, o, actions)
	want := "Create 2" + no + "; Delete 0" + no + "; Delete 4" + no + "; Drain 9: not tried; UpdateInPlace 1" + no
	if got := refusals(o.refused); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !maps.Equal(planned, before) {
		t.Error("the plan's set has changed")
	}
	clear(denied)
	c.apply(t.Context(), app, o, actions)
	if got := refusals(o.refused); got != "Drain 9: not tried" {
		t.Errorf("all came through, and %s is refused", got)
	}
}

// TestRefusalIsToldByTheNextSync: the second sync has the condition, and when
// the quota has room, it ends.
func TestRefusalIsToldByTheNextSync(t *testing.T) {
	tapp := wantsPods(someTApp("a"))
	full := true
	s := &stub{}
	s.answer = func(method, path, _ string) (int, any) {
		switch {
		case method == http.MethodPost && path == pods && full:
			return apiError(403, metav1.StatusReasonForbidden, "exceeded quota")
		case strings.HasPrefix(path, pods):
			return 200, ownedBy(somePod("a-0", "u0", "50"), "TApp", "a", "uid-a")
		case strings.HasPrefix(path, revisions):
			return 201, someRevision("a-1")
		case strings.HasSuffix(path, "/status"):
			return 200, tapp
		}
		return 201, nil // events
	}
	c := s.newController(t)
	if err := c.tapps.GetStore().Add(tapp); err != nil {
		t.Fatal(err)
	}
	o := c.objects.Get(keyOf("a"), tapp.UID)
	told := func() string {
		v, err := c.cached(tapp)
		if err != nil {
			t.Fatal(err)
		}
		p, err := c.compute(t.Context(), v, o)
		if err != nil {
			t.Fatal(err)
		}
		cond := meta.FindStatusCondition(p.Status.Conditions, tappv1.ConditionReplicaFailure)
		if cond == nil {
			return "none"
		}
		return fmt.Sprint(cond.Status, " ", cond.Message)
	}
	if _, err := c.sync(t.Context(), keyOf("a")); err == nil {
		t.Fatal("the first sync failed at nothing")
	}
	if got := told(); !strings.HasPrefix(got, "True cannot create instance 0 since ") || !strings.HasSuffix(got, ": exceeded quota") {
		t.Errorf("the second sync tells %s", got)
	}
	full = false
	o.guard = cache.Guard{}
	if _, err := c.sync(t.Context(), keyOf("a")); err != nil {
		t.Fatal(err)
	}
	if len(o.refused) > 0 {
		t.Errorf("after it came through: %v", o.refused)
	}
}

// TestRefusedDeletionOfAnEndedPod: the event tells of the deletion, and not of the creation
// that would follow.
func TestRefusedDeletionOfAnEndedPod(t *testing.T) {
	s := &stub{answer: func(method, _, _ string) (int, any) {
		if method == "DELETE" {
			return apiError(403, metav1.StatusReasonForbidden, `pods "a-4" is forbidden: no`)
		}
		return 200, &corev1.Pod{}
	}}
	c := s.newController(t)
	app := someTApp("a")
	_ = c.tapps.GetStore().Add(app)
	done := c.apply(t.Context(), app, &object{}, []plan.Action{{Op: plan.OpReplace, ID: "4", Pod: somePod("a-4", "", ""), Old: somePod("a-4", "", "")}})
	if got, want := fmt.Sprint(done.errs.Join()), `cannot delete the pods of instance 4: pods "a-4" is forbidden: no`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, ask := range s.asked() {
		if strings.HasPrefix(ask, "POST /api/v1/namespaces/ns/pods ") {
			t.Errorf("asked %s", ask)
		}
	}
}
