package foresight

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/rollout"
)

// strategyOf an AppSet, as the planner of rollouts has it.
func strategyOf(a *v1beta1.AppSet) rollout.Strategy {
	s := &a.Spec.UpdateStrategy
	out := rollout.Strategy{
		Concurrent: s.MaxConcurrentClusters, MaxUnavailable: s.MaxUnavailable, MaxFailures: s.MaxFailures,
		Soak: time.Duration(s.SoakSeconds) * time.Second,
	}
	out.Confirm = s.NeedWaitingForConfirm
	if s.UpgradeType != "" {
		out.Order = strings.Split(s.UpgradeType, "|")
	}
	for _, name := range s.CanaryClusters {
		out.Canaries = append(out.Canaries, v1beta1.FoldClusterName(name))
	}
	for i := range s.Stages {
		stage := &s.Stages[i]
		spec := rollout.StageSpec{Name: stage.Name, Groups: stage.Groups, Confirm: stage.Confirm, Soak: stage.SoakSeconds, Concurrent: stage.MaxConcurrentClusters}
		if stage.ClusterSelector != nil {
			spec.Selector = metav1.FormatLabelSelector(stage.ClusterSelector)
		}
		for _, name := range stage.Clusters {
			spec.Clusters = append(spec.Clusters, v1beta1.FoldClusterName(name))
		}
		out.Stages = append(out.Stages, spec)
	}
	return out
}
