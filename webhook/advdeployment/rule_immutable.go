package advdeployment

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
)

// compareImmutable rejects changes that the children cannot follow.
func compareImmutable(now, was *v1beta1.AdvDeployment) (errs field.ErrorList) {
	for _, p := range podset.Frozen(&now.Spec.PodSpec, &was.Spec.PodSpec, now.Spec.ServiceName, was.Spec.ServiceName) {
		errs = append(errs, field.Forbidden(field.NewPath(p.Field), p.Why))
	}
	return errs
}
