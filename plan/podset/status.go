package podset

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/message"
	"tkestack.io/tapp/plan/rollout"
)

// stateOf a stage in a word, for the status.
func stateOf(d *rollout.Decision, k int) string {
	stage := &d.Stages[k]
	back := d.State == rollout.RollingBack || d.State == rollout.RolledBack
	switch {
	case back && stage.Returning > 0:
		return string(rollout.RollingBack)
	case back && stage.Work && stage.Record.Started != nil:
		return string(rollout.RolledBack)
	case stage.Returning > 0 && !stage.Work:
		return string(rollout.Returning)
	case !stage.Work:
		return "Nothing to do"
	case stage.Record.Passed:
		return "Done"
	case k != d.Current || back:
		return "Pending"
	case d.State == rollout.Halted || d.State == rollout.Waiting:
		return string(d.State)
	case stage.Record.Well != nil:
		return "Soaking"
	}
	return "Progressing"
}

// Ran is what a stored status tells of an installation.
func Ran(stored *v1beta1.RolloutStatus) bool { return stored != nil && stored.Ran }

// RolloutStatus is what a status tells of a rollout.
func RolloutStatus(d *rollout.Decision) *v1beta1.RolloutStatus {
	r := &v1beta1.RolloutStatus{ID: d.Record.ID, Revision: d.Record.Revision, Stable: d.Record.Stable, State: string(d.State), Ran: d.Ran, Unproven: d.Record.Unproven, Message: message.Bound(d.Why), Budget: d.Budget, Charged: d.Charged}
	for _, key := range d.Record.Passed {
		r.Passed = append(r.Passed, key.String())
	}
	if d.Current >= 0 {
		r.Stage = d.Stages[d.Current].Name
	}
	for k := range d.Stages {
		stage := &d.Stages[k]
		if d.State == rollout.Done || d.State == rollout.Installing && !stage.Work {
			break
		}
		out := v1beta1.StageStatus{Name: stage.Name, State: stateOf(d, k), PodSets: int32(len(stage.Units)), Failed: int32(stage.Failed),
			Started: timeOf(stage.Record.Started), Finished: timeOf(stage.Record.Finished), Token: stage.Token, ConfirmedBy: stage.Record.ConfirmedBy}
		for _, i := range stage.Units {
			if d.Units[i].Done {
				out.Done++
			}
		}
		r.Stages = append(r.Stages, out)
	}
	return r
}

func timeOf(t *time.Time) *metav1.Time {
	if t == nil {
		return nil
	}
	return new(metav1.NewTime(*t))
}
