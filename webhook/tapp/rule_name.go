package tapp

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/ids"
)

// judgeName rejects a name with which the names of pods would be too long: a pod's
// name is its host name, and the value of labels on what belongs to the pod. With a
// Service it is a DNS label too, which has no dots.
func judgeName(t *tappv1.TApp) field.ErrorList {
	path := field.NewPath("metadata", "name")
	var errs field.ErrorList
	highest := strconv.Itoa(ids.Of(&t.Spec).Last())
	if room := validation.DNS1123LabelMaxLength - len("-"+highest); len(t.Name) > room {
		errs = append(errs, field.Invalid(path, t.Name, fmt.Sprintf(
			"instance %s would have a pod name of %d characters, and %d are allowed; give the TApp a name of at most %d",
			highest, len(t.Name+"-"+highest), validation.DNS1123LabelMaxLength, room)))
	}
	if t.Spec.ServiceName != "" && strings.Contains(t.Name, ".") {
		errs = append(errs, field.Invalid(path, t.Name, "with spec.serviceName each pod's name is a DNS label, which has no dots; give the TApp a name without them"))
	}
	return errs
}
