package appset

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// compareImmutable rejects changes that the objects in the clusters cannot follow.
//
// | field | may change |
// |---|---|
// | podSpec.selector | no: selectors of workloads are immutable |
// | serviceName | while both have dots: the Service has the AppSet's name then |
// | podSpec.volumeClaimTemplates | they may ask for more storage |
func compareImmutable(now, was *v1beta1.AppSet) (errs field.ErrorList) {
	podSpec := field.NewPath("spec", "podSpec")
	if !equality.Semantic.DeepEqual(now.Spec.PodSpec.Selector, was.Spec.PodSpec.Selector) {
		errs = append(errs, field.Forbidden(podSpec.Child("selector"), "it cannot change, since those of the objects in the clusters cannot; create another AppSet"))
	}
	if before, after := was.Spec.ServiceName, now.Spec.ServiceName; before != after && !(strings.Contains(before, ".") && strings.Contains(after, ".")) {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "serviceName"), fmt.Sprintf("it cannot change from %q to %q: only one domain can become another, since the Service keeps its name then", before, after)))
	}
	return append(errs, compareClaims(podSpec.Child("volumeClaimTemplates"), now.Spec.PodSpec.VolumeClaimTemplates, was.Spec.PodSpec.VolumeClaimTemplates)...)
}

func compareClaims(path *field.Path, now, was []corev1.PersistentVolumeClaim) field.ErrorList {
	const advice = "claims cannot change, but for more storage; create another AppSet"
	if len(now) != len(was) {
		return field.ErrorList{field.Forbidden(path, advice)}
	}
	for i := range now {
		after, before := now[i].DeepCopy(), was[i].DeepCopy()
		at := path.Key(before.Name)
		asked, had := after.Spec.Resources.Requests.Storage(), before.Spec.Resources.Requests.Storage()
		if asked.Cmp(*had) < 0 {
			return field.ErrorList{field.Forbidden(at.Child("spec", "resources", "requests", "storage"), fmt.Sprintf("it cannot shrink from %s to %s", had, asked))}
		}
		after.Spec.Resources, before.Spec.Resources = corev1.VolumeResourceRequirements{}, corev1.VolumeResourceRequirements{}
		if !equality.Semantic.DeepEqual(after, before) {
			return field.ErrorList{field.Forbidden(at, advice)}
		}
	}
	return nil
}
