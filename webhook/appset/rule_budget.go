package appset

import (
	"k8s.io/apimachinery/pkg/util/intstr"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// adviseBudget warns of fields that contradict each other: a silent cluster is charged
// with all of its instances, so that a rollout within a budget cannot pass it.
func adviseBudget(a, _ *v1beta1.AppSet) []string {
	s := &a.Spec.UpdateStrategy
	if s.MaxUnavailable == nil || s.UnreachableCounts == v1beta1.UnreachableAsLastSeen || s.MaxFailures == nil || *s.MaxFailures == intstr.FromInt32(0) {
		return nil
	}
	return []string{"spec.updateStrategy.maxFailures: a silent cluster uses maxUnavailable up with all of its instances, so that no rollout can pass it; set unreachableCounts to AsLastSeen to count them as they were seen last"}
}
