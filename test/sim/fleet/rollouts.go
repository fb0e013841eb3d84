package fleet

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/rollout"
	"tkestack.io/tapp/test/sim/apiserver"
)

// strategy of an AppSet, as users write them: many have none.
func (w *world) strategy(a *v1beta1.AppSet) {
	s := &a.Spec.UpdateStrategy
	*s = v1beta1.UpdateStrategy{MaxUnavailable: s.MaxUnavailable, Paused: s.Paused}
	if w.plan.Tight {
		a.Spec.ProgressDeadlineSeconds = new(int32(60 + 60*w.rng.IntN(5)))
		s.MaxUnavailable, s.MaxConcurrentClusters = new(intstr.FromInt32(int32(1+w.rng.IntN(2)))), new(intstr.FromInt32(int32(len(w.names))))
		if w.plan.Breaking { // more than one cluster begins
			a.Spec.ProgressDeadlineSeconds, s.MaxUnavailable = new(int32(60)), new(intstr.FromInt32(int32(3+w.rng.IntN(2))))
		}
		return
	}
	var names []string
	for i := range a.Spec.ClusterTopology.Clusters {
		names = append(names, a.Spec.ClusterTopology.Clusters[i].Name)
	}
	first, others := names[:1], names[1:]
	if w.plan.Gated && a.UID == "" {
		s.Stages = []v1beta1.Stage{{Name: "first", Clusters: slices.Clone(first), Confirm: new(true)}}
		return
	}
	if len(others) > 1 && w.rng.IntN(3) == 0 {
		first, others = names[:2], names[2:]
	}
	kind := w.rng.IntN(4)
	if w.plan.Grouped {
		kind = 4 + (int(w.plan.Seed/64)+w.rng.IntN(2))%2
	}
	switch kind {
	case 4: // of the source's fields
		s.UpgradeType = []string{"canary|blue", "canary|blue", "blue|canary", "canary", "blue"}[w.rng.IntN(5)]
		if w.rng.IntN(2) == 0 {
			s.CanaryClusters = slices.Clone(first)
		}
		s.NeedWaitingForConfirm = w.rng.IntN(3) > 0
	case 5:
		s.Stages = []v1beta1.Stage{{Name: "first", Clusters: slices.Clone(first), Groups: []string{canary}, Confirm: new(w.rng.IntN(3) > 0)}, {Name: "second", Groups: []string{[]string{canary, blue}[w.rng.IntN(2)]}, Confirm: new(w.rng.IntN(2) > 0)}}
	case 0: // of the source's fields
		s.CanaryClusters, s.NeedWaitingForConfirm = slices.Clone(first), w.rng.IntN(3) > 0
	case 1:
		s.Stages = []v1beta1.Stage{{Name: "first", Clusters: slices.Clone(first), Confirm: new(w.rng.IntN(3) > 0)}}
		if len(others) > 0 {
			s.Stages = append(s.Stages, v1beta1.Stage{Name: "second", Clusters: slices.Clone(others[:1]), Confirm: new(w.rng.IntN(2) > 0), MaxConcurrentClusters: new(intstr.FromInt32(int32(1 + w.rng.IntN(3))))})
		}
	case 2:
		s.NeedWaitingForConfirm = true // which has no effect with one stage
	}
	if w.rng.IntN(3) == 0 {
		s.MaxConcurrentClusters = new(intstr.FromInt32(int32(1 + w.rng.IntN(3))))
	}
	if w.rng.IntN(4) == 0 {
		s.SoakSeconds = int32(w.rng.IntN(30))
	}
	if w.rng.IntN(4) == 0 {
		s.MaxFailures = new(intstr.FromInt32(1))
	}
	if w.rng.IntN(4) == 0 {
		s.OnFailure = v1beta1.FailureRollback
	}
	if a.UID != "" { // a budget that comes late says nothing of what is out already
		return
	}
	a.Spec.ProgressDeadlineSeconds = new(int32(60 + 60*w.rng.IntN(5)))
	if w.rng.IntN(3) > 0 {
		s.MaxUnavailable = new(intstr.FromInt32(int32(1 + w.rng.IntN(3))))
	}
}

// forget a cluster in all stages. A stage without one would be of all clusters.
func forget(s *v1beta1.UpdateStrategy, cluster string) {
	is := func(name string) bool { return name == cluster }
	s.CanaryClusters = slices.DeleteFunc(s.CanaryClusters, is)
	for i := range s.Stages {
		s.Stages[i].Clusters = slices.DeleteFunc(s.Stages[i].Clusters, is)
	}
	s.Stages = slices.DeleteFunc(s.Stages, func(stage v1beta1.Stage) bool { return len(stage.Clusters) == 0 && len(stage.Groups) == 0 })
}

func idOf(a *v1beta1.AppSet) string {
	if a.Status.Rollout == nil {
		return ""
	}
	return a.Status.Rollout.ID
}

// waiting is the stage whose gate waits, by the status; nil: none does.
func waiting(a *v1beta1.AppSet) *v1beta1.StageStatus {
	if a.Status.Rollout == nil || a.Status.Rollout.State != string(rollout.Waiting) {
		return nil
	}
	for i := range a.Status.Rollout.Stages {
		if s := &a.Status.Rollout.Stages[i]; s.Token != "" {
			return s
		}
	}
	return nil
}

// confirm a gate as a user does: the one that waits; wrongly, what is not asked; or again,
// what was confirmed once, for the rollout of now.
func (w *world) confirm(a *v1beta1.AppSet, kind string) {
	stage := waiting(a)
	made := &v1beta1.Confirmation{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace}}
	made.Spec = v1beta1.ConfirmationSpec{AppSet: a.Name, Rollout: idOf(a), ConfirmedBy: "user"}
	old := apiserver.All[*v1beta1.Confirmation](w.hub.Store, grants)
	switch {
	case kind == "confirm again" && len(old) > 0:
		made.Spec.Stage, made.Spec.Token = old[0].Spec.Stage, old[0].Spec.Token
	case kind == "confirm wrongly":
		made.Spec.Stage, made.Spec.Token = []string{"first", "canary", "second"}[w.rng.IntN(3)], fmt.Sprintf("%020d", w.steps)
	case stage != nil:
		made.Spec.Stage, made.Spec.Token = stage.Name, stage.Token
	default:
		return
	}
	made.Name = strings.Join([]string{a.Name, made.Spec.Token}, "-")
	if kind != "confirm" {
		made.Name += "-" + fmt.Sprint(w.steps) // no webhook is there to mind
	}
	_, _ = w.hub.Create(grants, made, w.as("user"))
}

// attend to what only users can do: confirm what waits, and try again what halted; nil:
// there is nothing.
func (w *world) attend() func() {
	for _, a := range apiserver.All[*v1beta1.AppSet](w.hub.Store, appSets) {
		if stage := waiting(a); stage != nil && w.hub.Get(grants, apiserver.KeyOf(a.Namespace, a.Name+"-"+stage.Token)) == nil {
			return func() { w.confirm(a, "confirm") }
		}
		if r := a.Status.Rollout; r != nil && a.DeletionTimestamp == nil && (r.State == string(rollout.Halted) || r.State == string(rollout.RolledBack)) &&
			w.now().Sub(w.promised(a).retried) > mostRest {
			return func() {
				w.promised(a).retried = w.now()
				w.rewrite(a, Edit{App: apiserver.Key(a), Kind: "retry"}, w.names[0])
			}
		}
	}
	return nil
}
