package v1beta1

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestDefaults: absence has a meaning, what is there stays, and twice is once.
func TestDefaults(t *testing.T) {
	a := &AppSet{}
	DefaultAppSet(a)
	s := a.Spec
	if *s.RevisionHistoryLimit != 10 || *s.ProgressDeadlineSeconds != 600 || s.DeletionPolicy != DeletionDelete {
		t.Errorf("spec: %+v", s)
	}
	u := s.UpdateStrategy
	if u.MaxConcurrentClusters.IntValue() != 1 || u.MaxFailures.String() != "0" || u.OnFailure != FailureHalt || u.UnreachableCounts != UnreachableUnavailable {
		t.Errorf("updateStrategy: %+v", u)
	}
	if s.Replicas != nil || s.PodSpec.DeployType != "" || u.MaxUnavailable != nil {
		t.Errorf("fields whose default depends on others are filled: %+v", s)
	}
	again := a.DeepCopy()
	if DefaultAppSet(again); !equality.Semantic.DeepEqual(a, again) {
		t.Errorf("twice: %+v", again)
	}

	given := &AdvDeployment{}
	given.Spec.RevisionHistoryLimit, given.Spec.ProgressDeadlineSeconds = new(int32), new(int32(7))
	given.Spec.UpdateStrategy = UpdateStrategy{
		MaxConcurrentClusters: new(intstr.FromString("50%")), MaxFailures: new(intstr.FromInt32(2)),
		OnFailure: FailureRollback, UnreachableCounts: UnreachableAsLastSeen,
	}
	want := given.DeepCopy()
	if DefaultAdvDeployment(given); !equality.Semantic.DeepEqual(given, want) {
		t.Errorf("what was given: %+v", given)
	}
}

func TestDeployTypeOf(t *testing.T) {
	for _, c := range []struct {
		spec PodSpec
		want string
		ok   bool
	}{
		{PodSpec{}, DeployDeployment, true},
		{PodSpec{Chart: &ChartSpec{}}, DeployHelm, true},
		{PodSpec{Chart: &ChartSpec{}, DeployType: "Deployment"}, DeployDeployment, true},
		{PodSpec{DeployType: "HELM"}, DeployHelm, true},
		{PodSpec{DeployType: "TApp"}, DeployInPlaceSet, true},
		{PodSpec{DeployType: "inplaceset"}, DeployInPlaceSet, true},
		{PodSpec{DeployType: "statefulSet"}, DeployStatefulSet, true},
		{PodSpec{DeployType: "daemonset"}, "", false},
	} {
		if got, ok := DeployTypeOf(&c.spec); got != c.want || ok != c.ok {
			t.Errorf("%+v: %s %t", c.spec, got, ok)
		}
	}
}

func TestFoldClusterName(t *testing.T) {
	if got := FoldClusterName("TCC_BJ4-dks"); got != "tcc-bj4-dks" {
		t.Error(got)
	}
}
