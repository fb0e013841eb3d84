package tapp

import (
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/restart"
	"tkestack.io/tapp/plan/template"
)

// judgeRestartOn rejects patterns that no annotation can match, and None beside others.
func judgeRestartOn(t *tappv1.TApp) field.ErrorList {
	var errs field.ErrorList
	path, entries := field.NewPath("spec", "updateStrategy", "restartOn"), t.Spec.UpdateStrategy.RestartOn
	for i, entry := range entries {
		switch {
		case entry == restart.None && len(entries) > 1:
			errs = append(errs, field.Invalid(path.Index(i), entry, "it means no annotation, and stands alone; leave it out, or leave out the others"))
		case entry != restart.None && len(validation.IsQualifiedName(strings.ToLower(strings.ReplaceAll(entry, "*", "x")))) > 0:
			errs = append(errs, field.Invalid(path.Index(i), entry, "it is no key of an annotation; give one, such as checksum/config or checksum/*: * stands for any characters but /"))
		}
	}
	return errs
}

// adviseRestartOn warns where people ask for a restart by an annotation, and the policy
// forbids it.
func adviseRestartOn(now, was *tappv1.TApp) []string {
	if was == nil || now.Spec.UpdateStrategy.InPlaceUpdate.Policy != tappv1.InPlaceOnly {
		return nil
	}
	var out []string
	patterns := restart.Patterns(now.Spec.UpdateStrategy.RestartOn)
	for t := range templatesOf(now) {
		before := templateOf(was, t.name)
		if before == nil || maps.Equal(before.Annotations, t.Annotations) {
			continue
		}
		for _, key := range restart.Annotations(patterns, template.NewRecord(before), t.PodTemplateSpec) {
			out = append(out, fmt.Sprintf("%s: it changed, and nothing restarts, because spec.updateStrategy.inPlaceUpdate.policy is InPlaceOnly; kubectl tapp restart %s restarts the instances",
				t.path.Child("metadata", "annotations").Key(key), now.Name))
		}
	}
	return out
}
