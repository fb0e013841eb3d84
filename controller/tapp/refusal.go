package tapp

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/controller/write"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/message"
	plan "tkestack.io/tapp/plan/tapp"
)

// reasonFailedCreate is the reason of the condition ReplicaFailure, and that of the events.
const reasonFailedCreate = "FailedCreate"

// refusal is why a pod or claim could not be created, in the API server's words: of several
// the one of the lowest instance id, so that the status says the same from sync to sync.
type refusal struct {
	mu   sync.Mutex
	id   int
	text string // empty: none was refused
}

// note a failure of an action. What ends for all objects at once is no refusal.
func (r *refusal) note(a *plan.Action, err error) {
	if !creates(*a) || write.IsTransient(err) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if id := number(a.ID); r.text == "" || id < r.id {
		r.id, r.text = id, words(err, objectOf(a))
	}
}

// creates says whether an action creates a pod or a claim of an instance.
func creates(a plan.Action) bool {
	return a.Op == plan.OpCreate || a.Op == plan.OpReplace || a.Op == plan.OpCreateClaim
}

// tellRefusal has the status tell of what the last sync could not create. After a restart
// the stored condition stays until there is nothing left to create.
func tellRefusal(t *tappv1.TApp, text string, now metav1.Time, p *plan.Plan) {
	told := meta.IsStatusConditionTrue(p.Status.Conditions, tappv1.ConditionReplicaFailure)
	if text == "" && !told {
		return
	}
	c := metav1.Condition{Type: tappv1.ConditionReplicaFailure, Status: metav1.ConditionFalse, Reason: "Created",
		Message: "no pod or claim is left to create", ObservedGeneration: t.Generation, LastTransitionTime: now}
	left := slices.ContainsFunc(p.Actions, creates) || slices.ContainsFunc(p.Instances, func(i plan.Instance) bool { return i.Reason == plan.ReasonRoom })
	switch {
	case left && text != "":
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, reasonFailedCreate, message.Bound(text)
	case left || !told:
		return
	}
	if was := meta.FindStatusCondition(p.Status.Conditions, c.Type); was == nil || was.Status != c.Status {
		p.StatusDeferrable = false // others wait for this news
	}
	meta.SetStatusCondition(&p.Status.Conditions, c)
}
