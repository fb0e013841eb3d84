package tapp

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
)

// TestRefusal: of what could not be created the lowest instance id tells, in any order;
// an API server that is away has refused nothing.
func TestRefusal(t *testing.T) {
	quota := func(name string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, name, errors.New("exceeded quota"))
	}
	var r refusal
	r.note(&plan.Action{Op: plan.OpCreate, ID: "1", Pod: somePod("a-1", "", "")}, apierrors.NewInternalError(errors.New("etcd")))
	r.note(&plan.Action{Op: plan.OpDelete, ID: "1", Pod: somePod("a-1", "", "")}, quota("a-1"))
	if r.text != "" {
		t.Errorf("refused is %q, want nothing", r.text)
	}
	for _, id := range []string{"10", "9", "11"} {
		r.note(&plan.Action{Op: plan.OpCreate, ID: id, Pod: somePod("a-"+id, "", "")}, quota("a-"+id))
	}
	if want := `pods "a-<id>" is forbidden: exceeded quota`; r.text != want || r.id != 9 {
		t.Errorf("refused is %q of instance %d, want %q of 9", r.text, r.id, want)
	}
}

// TestTellRefusal: the condition comes with the first refusal, stays while there is
// something to create, and is False from then on.
func TestTellRefusal(t *testing.T) {
	tapp, now := someTApp("a"), metav1.NewTime(time.Unix(1000, 0))
	create := []plan.Action{{Op: plan.OpCreate, ID: "0"}}
	var stored []metav1.Condition
	for _, step := range []struct {
		about      string
		actions    []plan.Action
		refused    string
		is         metav1.ConditionStatus // "": there is none
		message    string
		deferrable bool
	}{
		{"at first", create, "", "", "", true},
		{"refused", create, "exceeded quota", metav1.ConditionTrue, "exceeded quota", false},
		{"still refused", create, "exceeded quota", metav1.ConditionTrue, "exceeded quota", true},
		{"another word", create, "no", metav1.ConditionTrue, "no", true},
		{"after a restart", create, "", metav1.ConditionTrue, "no", true},
		{"created", nil, "", metav1.ConditionFalse, "no pod or claim is left to create", false},
		{"at rest", nil, "", metav1.ConditionFalse, "no pod or claim is left to create", true},
		{"others to create", create, "", metav1.ConditionFalse, "no pod or claim is left to create", true},
	} {
		p := &plan.Plan{Actions: step.actions, StatusDeferrable: true, Status: tappv1.TAppStatus{Conditions: stored}}
		tellRefusal(tapp, step.refused, now, p)
		stored = p.Status.Conditions
		c := meta.FindStatusCondition(stored, tappv1.ConditionReplicaFailure)
		switch {
		case c == nil && step.is != "", c != nil && (c.Status != step.is || c.Message != step.message):
			t.Errorf("%s: %+v, want %s: %s", step.about, c, step.is, step.message)
		case p.StatusDeferrable != step.deferrable:
			t.Errorf("%s: deferrable is %t", step.about, p.StatusDeferrable)
		}
	}
}
