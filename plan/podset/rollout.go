package podset

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/rollout"
)

// RolloutStrategy is what a strategy asks of a rollout, with the names of clusters folded.
// The deadline is in seconds; nil: none.
func RolloutStrategy(s *v1beta1.UpdateStrategy, deadline *int32) rollout.Strategy {
	out := rollout.Strategy{
		Staging:    rollout.Staging{Order: orderOf(s.UpgradeType), Canaries: folded(s.CanaryClusters), Confirm: s.NeedWaitingForConfirm},
		Concurrent: s.MaxConcurrentClusters, MaxUnavailable: s.MaxUnavailable, MaxFailures: s.MaxFailures,
		Soak: time.Duration(s.SoakSeconds) * time.Second, Paused: s.Paused,
		Rollback: s.OnFailure == v1beta1.FailureRollback, AsLastSeen: s.UnreachableCounts == v1beta1.UnreachableAsLastSeen,
	}
	if deadline != nil {
		out.Deadline = time.Duration(*deadline) * time.Second
	}
	for i := range s.Stages {
		stage := &s.Stages[i]
		spec := rollout.StageSpec{Name: stage.Name, Clusters: folded(stage.Clusters), Groups: stage.Groups,
			Confirm: stage.Confirm, Soak: stage.SoakSeconds, Concurrent: stage.MaxConcurrentClusters}
		if selector, err := metav1.LabelSelectorAsSelector(stage.ClusterSelector); err == nil && stage.ClusterSelector != nil {
			spec.Selector = selector.String()
		}
		out.Stages = append(out.Stages, spec)
	}
	return out
}

func folded(names []string) (out []string) {
	for _, name := range names {
		out = append(out, v1beta1.FoldClusterName(name))
	}
	return out
}

// orderOf groups, as upgradeType has it.
func orderOf(upgradeType string) []string {
	return strings.FieldsFunc(upgradeType, func(r rune) bool { return r == '|' })
}
