package tapp

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	plan "tkestack.io/tapp/plan/tapp"
	"tkestack.io/tapp/plan/trial"
)

// TestApplyCollects: 1,000 creates meet an exhausted quota: one try, one error,
// and nothing is done again before the backoff says so.
func TestApplyCollects(t *testing.T) {
	s := &stub{answer: func(string, string, string) (int, any) {
		return apiError(403, metav1.StatusReasonForbidden, `pods "a-0" is forbidden: exceeded quota`)
	}}
	c := s.newController(t)
	tapp := someTApp("a")
	_ = c.tapps.GetStore().Add(tapp)
	var actions []plan.Action
	for n := range 1000 {
		actions = append(actions, plan.Action{Op: plan.OpCreate, ID: fmt.Sprint(n), Pod: somePod(fmt.Sprint("a-", n), "", ""), Reason: "PodMissing", Why: "none"})
	}
	got := c.apply(t.Context(), tapp, &object{}, actions)
	if n := len(s.writes()); n != 1 {
		t.Errorf("%d writes, want 1", n)
	}
	if got.Skipped != 999 || got.again != 0 || got.summary() != "failed:1 skipped:999" {
		t.Errorf("skipped %d, again %v, %q", got.Skipped, got.again, got.summary())
	}
	if err := got.errs.Join(); err == nil || err.Error() != `cannot create instance 0: pods "a-0" is forbidden: exceeded quota` {
		t.Errorf("got error %v", err)
	}
}

// TestApplyStopsWhenTheSpecChanges: what is left of a plan for an old generation
// is not carried out.
func TestApplyStopsWhenTheSpecChanges(t *testing.T) {
	tapp := someTApp("a")
	var c *Controller
	posts := 0
	s := &stub{}
	s.answer = func(string, string, string) (int, any) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if posts++; posts == 3 {
			next := tapp.DeepCopy()
			next.Generation++
			_ = c.tapps.GetStore().Update(next)
		}
		return 201, somePod("a-1", "u", "50")
	}
	c = s.newController(t)
	_ = c.tapps.GetStore().Add(tapp)
	var actions []plan.Action
	for n := range 1000 {
		actions = append(actions, plan.Action{Op: plan.OpCreate, ID: fmt.Sprint(n), Pod: somePod(fmt.Sprint("a-", n), "", "")})
	}
	got := c.apply(t.Context(), tapp, &object{}, actions)
	if n := len(s.asked()); n > 20 || got.Skipped < 980 || got.again == 0 {
		t.Errorf("%d requests, %d skipped, again after %v; want few, the rest, and soon", n, got.Skipped, got.again)
	}
}

// TestVersions: deletions carry the version that they hold for, and patches are written as
// the planner has them.
func TestVersions(t *testing.T) {
	pod := ownedBy(somePod("a-1", "u1", "50"), "TApp", "a", "uid-a")
	data := []byte(`{"metadata":{"uid":"u1","resourceVersion":"50"},"spec":{"a":1}}`)
	for name, c := range map[string]struct {
		action plan.Action
		want   string
	}{
		"drain":              {plan.Action{Op: plan.OpDrain, Pod: pod, Status: data}, `PATCH /api/v1/namespaces/ns/pods/a-1/status ` + string(data)},
		"update":             {plan.Action{Op: plan.OpUpdateInPlace, Pod: pod, Patch: data}, `PATCH /api/v1/namespaces/ns/pods/a-1 ` + string(data)},
		"delete":             {plan.Action{Op: plan.OpDelete, Pod: pod}, `"preconditions":{"uid":"u1"}`},
		"delete one version": {plan.Action{Op: plan.OpDelete, Pod: pod, ResourceVersion: "50"}, `"preconditions":{"uid":"u1","resourceVersion":"50"}`},
		"delete by force":    {plan.Action{Op: plan.OpForceDelete, Pod: pod, ResourceVersion: "50"}, `"gracePeriodSeconds":0,"preconditions":{"uid":"u1","resourceVersion":"50"}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := &stub{answer: func(string, string, string) (int, any) { return 200, pod }}
			controller := s.newController(t)
			var o object
			if err := controller.operations[c.action.Op].write(t.Context(), controller.newWriter(t.Context(), someTApp("a"), &o), &c.action); err != nil {
				t.Errorf("got error %v", err)
			}
			if got := fmt.Sprint(s.asked()); !strings.Contains(got, c.want) {
				t.Errorf("asked for\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestTrustOfApply: a thousand creates of a TApp where another one does well meet an
// exhausted quota. It costs some requests the first time, and one after that.
func TestTrustOfApply(t *testing.T) {
	full := false
	s := &stub{answer: func(_, path, _ string) (int, any) {
		if full {
			return apiError(403, metav1.StatusReasonForbidden, "exceeded quota")
		}
		return 201, somePod("b-0", "u", "50")
	}}
	c := s.newController(t)
	actions := func(name string) (out []plan.Action) {
		for n := range 1000 {
			out = append(out, plan.Action{Op: plan.OpCreate, ID: fmt.Sprint(n), Pod: somePod(fmt.Sprint(name, "-", n), "", "")})
		}
		return out
	}
	a, b := someTApp("a"), someTApp("b")
	_, _ = c.tapps.GetStore().Add(a), c.tapps.GetStore().Add(b)
	c.apply(t.Context(), b, &object{}, actions("b")[:1])
	full = true
	var m object
	for _, most := range []int{8, 1, 1} {
		before := len(s.writes())
		c.apply(t.Context(), a, &m, actions("a"))
		if n := len(s.writes()) - before; n == 0 || n > most {
			t.Errorf("%d writes, want one to %d", n, most)
		}
	}
}

// TestFinalRefusals of a resize are remembered, so that the pod is recreated; others are
// tried again.
func TestFinalRefusals(t *testing.T) {
	forbidden := func(text string, causes ...metav1.CauseType) *apierrors.StatusError {
		err := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a-1", errors.New(text))
		for _, c := range causes {
			err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: c})
		}
		return err
	}
	invalid := func(path *field.Path, text string) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a-1", field.ErrorList{field.Forbidden(path, text)})
	}
	for _, c := range []struct {
		err   error
		final bool
	}{
		{nil, false},
		{invalid(field.NewPath("spec"), "Pod running on node without support for resize"), true},
		{invalid(field.NewPath(""), "windows pods cannot be resized"), true},
		{invalid(field.NewPath(""), "resize of pods with pod-level resources is forbidden"), true},
		{forbidden("node didn't have enough allocatable resources", "NodeCapacity"), true},
		{forbidden("pod resize is only supported on linux nodes", "UnsupportedPlatform"), true},
		{forbidden("pod update requires features X which are not available on node \"n\""), true},
		{forbidden("exceeded quota: q"), false},
		{forbidden("maximum cpu usage per Container is 1"), false},
		{forbidden("not yet ready to handle request"), false},
		{invalid(field.NewPath("metadata", "uid"), "field is immutable"), false},
		{apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "a-1", errors.New("version")), false},
		{apierrors.NewInternalError(errors.New("etcd")), false},
	} {
		if got := trial.Judge(trial.Resize, c.err) == trial.Immutable; got != c.final {
			t.Errorf("%v: %t", c.err, got)
		}
	}
}
