package v1beta1

import "k8s.io/apimachinery/pkg/util/intstr"

// Defaults of fields whose absence has a meaning.
const (
	DefaultRevisionHistoryLimit    int32 = 10
	DefaultProgressDeadlineSeconds int32 = 600
	DefaultMaxConcurrentClusters   int32 = 1
	DefaultMaxFailures             int32 = 0
)

// DefaultAppSet fills the fields of a spec whose absence has a meaning of its own. It
// is idempotent, and needs nothing but the object. Replicas and deployType stay: what
// their absence means depends on other fields (see plan/podset and DeployTypeOf).
func DefaultAppSet(a *AppSet) {
	s := &a.Spec
	s.RevisionHistoryLimit = orDefault(s.RevisionHistoryLimit, DefaultRevisionHistoryLimit)
	s.ProgressDeadlineSeconds = orDefault(s.ProgressDeadlineSeconds, DefaultProgressDeadlineSeconds)
	if s.DeletionPolicy == "" {
		s.DeletionPolicy = DeletionDelete
	}
	s.UpdateStrategy.complete()
}

// DefaultAdvDeployment is DefaultAppSet for an AdvDeployment.
func DefaultAdvDeployment(a *AdvDeployment) {
	a.Spec.RevisionHistoryLimit = orDefault(a.Spec.RevisionHistoryLimit, DefaultRevisionHistoryLimit)
	a.Spec.ProgressDeadlineSeconds = orDefault(a.Spec.ProgressDeadlineSeconds, DefaultProgressDeadlineSeconds)
	a.Spec.UpdateStrategy.complete()
}

func (u *UpdateStrategy) complete() {
	if u.MaxConcurrentClusters == nil {
		u.MaxConcurrentClusters = new(intstr.FromInt32(DefaultMaxConcurrentClusters))
	}
	if u.MaxFailures == nil {
		u.MaxFailures = new(intstr.FromInt32(DefaultMaxFailures))
	}
	if u.OnFailure == "" {
		u.OnFailure = FailureHalt
	}
	if u.UnreachableCounts == "" {
		u.UnreachableCounts = UnreachableUnavailable
	}
}

func orDefault(value *int32, otherwise int32) *int32 {
	if value == nil {
		return &otherwise
	}
	return value
}
