package podset

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// Frozen are the changes of a spec that the objects in the clusters cannot follow.
//
// | field | may change |
// |---|---|
// | podSpec.selector | no: selectors of workloads are immutable |
// | serviceName | while both have dots: the Service has the application's name then |
// | podSpec.volumeClaimTemplates | labels, annotations and more storage may change, but for those of a StatefulSet, which are immutable |
func Frozen(now, was *v1beta1.PodSpec, nowService, wasService string) (out []Problem) {
	if !equality.Semantic.DeepEqual(now.Selector, was.Selector) {
		out = append(out, Problem{"spec.podSpec.selector", "it cannot change, since those of the objects in the clusters cannot; make another application of it"})
	}
	if nowService != wasService && !(strings.Contains(wasService, ".") && strings.Contains(nowService, ".")) {
		out = append(out, Problem{"spec.serviceName", fmt.Sprintf("it cannot change from %q to %q: only one domain can become another, since the Service keeps its name then", wasService, nowService)})
	}
	deployType, _ := v1beta1.DeployTypeOf(now)
	return append(out, frozenClaims(now.VolumeClaimTemplates, was.VolumeClaimTemplates, deployType == v1beta1.DeployStatefulSet)...)
}

func frozenClaims(now, was []corev1.PersistentVolumeClaim, all bool) []Problem {
	const path = "spec.podSpec.volumeClaimTemplates"
	advice := "claims cannot change, but for labels, annotations and more storage; make another application of it"
	if all {
		advice = "those of a StatefulSet cannot change; have the claims in the clusters ask for more storage, or make another application of it"
	}
	if len(now) != len(was) {
		return []Problem{{path, advice}}
	}
	for i := range now {
		after, before := now[i].DeepCopy(), was[i].DeepCopy()
		at := fmt.Sprintf("%s[%s]", path, before.Name)
		asked, had := after.Spec.Resources.Requests.Storage(), before.Spec.Resources.Requests.Storage()
		if all && asked.Cmp(*had) != 0 {
			return []Problem{{at, advice}}
		}
		if asked.Cmp(*had) < 0 {
			return []Problem{{at + ".spec.resources.requests.storage", fmt.Sprintf("it cannot shrink from %s to %s", had, asked)}}
		}
		after.Spec.Resources, before.Spec.Resources = corev1.VolumeResourceRequirements{}, corev1.VolumeResourceRequirements{}
		if !all && after.Name == before.Name {
			after.ObjectMeta, before.ObjectMeta = metav1.ObjectMeta{}, metav1.ObjectMeta{} // claims that exist stay as they are
		}
		if !equality.Semantic.DeepEqual(after, before) {
			return []Problem{{at, advice}}
		}
	}
	return nil
}
