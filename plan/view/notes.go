package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/ids"
	"tkestack.io/tapp/plan/template"
)

// UsesOtherTemplates says whether instances of a spec, which has its defaults, may use
// another template than spec.template, or than the one that rolls. Others have no notes.
func UsesOtherTemplates(spec *tappv1.TAppSpec) bool {
	return len(spec.Templates) > 0 || spec.DefaultTemplateName != tappv1.DefaultTemplateName ||
		spec.UpdateStrategy.Template != spec.DefaultTemplateName
}

// Notes are what surprises users of a change: how many serving instances forced updates
// interrupt at once, and which instances do not follow a change of spec.template.
// before is the stored TApp; nil if there is none.
func (o *Observed) Notes(before *tappv1.TApp) []string {
	var out []string
	if before == nil || !UsesOtherTemplates(&o.Spec) {
		return out
	}
	for _, note := range []string{o.forcedAtOnce(), o.notFollowing(before)} {
		if note != "" {
			out = append(out, note)
		}
	}
	return out
}

// forcedAtOnce tells how many serving instances forced updates interrupt together; empty
// for one or none.
func (o *Observed) forcedAtOnce() string {
	serving, taken := 0, []int{}
	for i := range o.Plan.Instances {
		if o.Plan.Instances[i].Serving {
			serving++
		}
	}
	for _, s := range o.Steps() {
		if s.Phase != Forced {
			continue
		}
		taken = append(taken, slices.DeleteFunc(slices.Clone(s.IDs), func(id int) bool { return slices.Contains(s.NotServing, id) })...)
	}
	room := serving - (o.Plan.Desired - o.Plan.Budgets.Forced.MaxUnavailable)
	n := min(len(taken), room)
	if n < 2 || !o.Plan.Budgets.Forced.Valid {
		return ""
	}
	slices.Sort(taken)
	return fmt.Sprintf("%d of %d instances at once (of %s): spec.updateStrategy.forceUpdate.maxUnavailable is %s, and they do not use the template that rolls, %q",
		n, o.Plan.Desired, ids.Ranges(taken), o.Spec.UpdateStrategy.ForceUpdate.MaxUnavailable, o.Spec.UpdateStrategy.Template)
}

// notFollowing tells which instances use another template than spec.template, which
// changed; empty if all use it, or it did not change.
func (o *Observed) notFollowing(before *tappv1.TApp) string {
	was, err1 := template.Hash(&before.Spec.Template)
	is, err2 := template.Hash(&o.TApp.Spec.Template)
	if err1 != nil || err2 != nil || was.Template == is.Template {
		return ""
	}
	others := map[string][]int{}
	n := 0
	for i := range o.Plan.Instances {
		if x := &o.Plan.Instances[i]; x.Desired && x.Template != tappv1.DefaultTemplateName {
			others[x.Template] = append(others[x.Template], x.Num)
			n++
		}
	}
	if n == 0 {
		return ""
	}
	const most = 4
	var parts []string
	for k, name := range slices.Sorted(maps.Keys(others)) {
		if k == most {
			parts = append(parts, fmt.Sprintf("%d templates more", len(others)-most))
			break
		}
		parts = append(parts, fmt.Sprintf("%q (%s)", name, ids.Ranges(others[name])))
	}
	words := "instances do not follow the change of spec.template, and stay on"
	if n == 1 {
		words = "instances does not follow the change of spec.template, and stays on"
	}
	return fmt.Sprintf("%d of %d %s %s", n, o.Plan.Desired, words, strings.Join(parts, ", "))
}
