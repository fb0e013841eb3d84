package tapp

import (
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// judgeClaims rejects claim templates whose name is no name of a volume or comes
// twice, and those that lack what every claim needs.
func judgeClaims(t *tappv1.TApp) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, c := range t.Spec.VolumeClaimTemplates {
		path := field.NewPath("spec", "volumeClaimTemplates").Index(i)
		name := path.Child("metadata", "name")
		switch {
		case c.Name == "":
			errs = append(errs, field.Required(name, "the claim is mounted by it; give it the name of a volume, such as data"))
		case len(validation.IsDNS1123Label(c.Name)) > 0:
			errs = append(errs, field.Invalid(name, c.Name, "it is the name of a volume too: lower case letters, digits and dashes, at most 63; rename it, such as data"))
		case seen[c.Name]:
			e := field.Duplicate(name, c.Name)
			e.Detail = "an earlier claim template has this name; give each its own"
			errs = append(errs, e)
		}
		seen[c.Name] = true
		if len(c.Spec.AccessModes) == 0 {
			errs = append(errs, field.Required(path.Child("spec", "accessModes"), "a claim needs an access mode, such as ReadWriteOnce"))
		}
		request := path.Child("spec", "resources", "requests").Key(string(corev1.ResourceStorage))
		if size, ok := c.Spec.Resources.Requests[corev1.ResourceStorage]; !ok {
			errs = append(errs, field.Required(request, "a claim needs a size, such as 1Gi"))
		} else if size.Sign() <= 0 {
			errs = append(errs, field.Invalid(request, size.String(), "a claim needs a size above 0, such as 1Gi"))
		}
	}
	return errs
}

// compareClaims rejects changes of claim templates that the existing claims cannot
// follow. (The schema rejects that one is added, removed or renamed.)
//
//	change                                    verdict
//	labels, annotations, all metadata         admitted: new claims get them
//	the size grows                            admitted
//	it shrinks, some claim may lack the size  admitted: the storage may not have it
//	it shrinks, all claims have the size      denied
//	kind, status, the default volumeMode      admitted: the claims are the same
//	anything else of spec                     denied, by the name of the field
func compareClaims(now, was *tappv1.TApp) field.ErrorList {
	var errs field.ErrorList
	for i := range min(len(now.Spec.VolumeClaimTemplates), len(was.Spec.VolumeClaimTemplates)) {
		path := field.NewPath("spec", "volumeClaimTemplates").Index(i).Child("spec")
		is, before := now.Spec.VolumeClaimTemplates[i].DeepCopy(), was.Spec.VolumeClaimTemplates[i].DeepCopy()
		if is.Name != before.Name {
			continue
		}
		size, oldSize := is.Spec.Resources.Requests[corev1.ResourceStorage], before.Spec.Resources.Requests[corev1.ResourceStorage]
		delete(is.Spec.Resources.Requests, corev1.ResourceStorage)
		delete(before.Spec.Resources.Requests, corev1.ResourceStorage)
		if size.Cmp(oldSize) < 0 && !isGrowing(was) {
			errs = append(errs, field.Invalid(path.Child("resources", "requests").Key(string(corev1.ResourceStorage)), size.String(),
				fmt.Sprintf("it was %s, and a claim cannot shrink; give at least that", oldSize.String())))
		}
		withoutSpelling(&is.Spec)
		withoutSpelling(&before.Spec)
		for _, name := range changedFields(is.Spec, before.Spec) {
			errs = append(errs, field.Forbidden(path.Child(name), "the claims of the instances cannot follow a change of it; leave it as it was, or create a new TApp for other claims. "+
				"Labels, annotations and a larger storage request can change"))
		}
	}
	return errs
}

// changedFields are the names of the fields in which two specs of claims differ.
func changedFields(is, before corev1.PersistentVolumeClaimSpec) (out []string) {
	now, was := reflect.ValueOf(is), reflect.ValueOf(before)
	for i := range now.NumField() {
		if !equality.Semantic.DeepEqual(now.Field(i).Interface(), was.Field(i).Interface()) {
			name, _, _ := strings.Cut(now.Type().Field(i).Tag.Get("json"), ",")
			out = append(out, name)
		}
	}
	return out
}

// withoutSpelling drops what makes no other claim: the default volumeMode.
func withoutSpelling(c *corev1.PersistentVolumeClaimSpec) {
	if c.VolumeMode != nil && *c.VolumeMode == corev1.PersistentVolumeFilesystem {
		c.VolumeMode = nil
	}
}

// isGrowing says whether some claim may lack the size of its template: the status says
// so, or it is older than the last change.
func isGrowing(t *tappv1.TApp) bool {
	ready := meta.FindStatusCondition(t.Status.Conditions, tappv1.ConditionReady)
	return ready != nil && ready.ObservedGeneration != t.Generation || meta.IsStatusConditionTrue(t.Status.Conditions, tappv1.ConditionClaimsGrowing)
}
