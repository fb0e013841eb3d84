package tapp

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// MaxReplicas is the most instances that one TApp can have: the status of more
// would not fit in one object of etcd's default size (1.5 MiB).
const MaxReplicas = 50_000

// Reasons of problems.
const (
	ReasonInvalidSpec      = "InvalidSpec"
	ReasonTemplateMissing  = "TemplateMissing"
	ReasonSelectorMismatch = "SelectorMismatch"
	ReasonInPlaceOnly      = "InPlaceOnly"
)

// problem notes something that the controller cannot do.
func (d *decision) problem(reason, field, format string, args ...any) {
	d.problems = append(d.problems, Problem{Field: field, Reason: reason, Why: fmt.Sprintf(format, args...)})
}

// readReplicas returns the number of wanted ids. With a number that cannot be
// met the instances that exist are left as they are, see wantedIDs.
func (d *decision) readReplicas() int {
	n := int(*d.tapp.Spec.Replicas)
	switch {
	case n < 0:
		d.problem(ReasonInvalidSpec, "spec.replicas", "%d is negative; give 0 or more", n)
	case n > MaxReplicas:
		d.problem(ReasonInvalidSpec, "spec.replicas", "%d is more than the %d instances that one TApp can have; split it into several", n, MaxReplicas)
	default:
		return n
	}
	d.frozen = fmt.Sprintf("spec.replicas cannot be %d, and every instance stays as it is until that is corrected", n)
	return -1
}

// wantedIDs are the ids below replicas, in ascending order. While spec.replicas
// cannot tell they are those that the stored status or a pod tells of: what has
// ended must not be forgotten, and what was never there must not appear.
func (d *decision) wantedIDs() []int {
	if d.replicas >= 0 {
		out := make([]int, d.replicas)
		for num := range out {
			out[num] = num
		}
		return out
	}
	known := map[int]struct{}{}
	for id := range d.tapp.Status.Statuses {
		if num, ok := ParseID(id); ok {
			known[num] = struct{}{}
		}
	}
	for _, pod := range d.in.Pods {
		if num, ok := instanceOf(d.tapp.Name, pod.Name); ok && controls(d.tapp, pod) {
			known[num] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(known))
}

// readSelector returns the selector, or nil when it is unusable: then nothing is
// created, adopted or released.
func (d *decision) readSelector() labels.Selector {
	selector := d.parseSelector()
	if selector == nil && d.frozen == "" {
		d.frozen = "there is no usable selector, so that a new pod would not belong to the TApp"
	}
	return selector
}

func (d *decision) parseSelector() labels.Selector {
	s := d.tapp.Spec.Selector
	if s == nil {
		d.problem(ReasonInvalidSpec, "spec.template.metadata.labels", "spec.selector is absent and the template has no labels to take it from; give the template a label, such as app: %s", d.tapp.Name)
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		d.problem(ReasonInvalidSpec, "spec.selector", "%v; correct the selector", err)
		return nil
	}
	if selector.Empty() {
		d.problem(ReasonInvalidSpec, "spec.selector", "an empty selector matches every pod of the namespace; name labels that the templates carry")
		return nil
	}
	return selector
}

// checkIDs notes keys that are no instance ids. Their entries have no effect.
func (d *decision) checkIDs() {
	for _, f := range []struct {
		field string
		keys  []string
	}{
		{"spec.templates", slices.Sorted(maps.Keys(d.tapp.Spec.Templates))},
		{"spec.statuses", slices.Sorted(maps.Keys(d.tapp.Spec.Statuses))},
	} {
		for _, id := range f.keys {
			if _, ok := ParseID(id); !ok {
				d.problem(ReasonInvalidSpec, f.field+"["+id+"]", "%q is not an instance id; ids are whole numbers from 0 without leading zeros, such as \"0\" or \"12\"", id)
			}
		}
	}
}

// budgets of updates; below 1: unusable, and no available instance may be
// updated on it.
type budgets struct {
	rolling intstr.IntOrString
	forced  intstr.IntOrString
	// broken is why no update of an available instance may start: updateStrategy
	// names a template that does not exist, so that it cannot be told which
	// instances were meant to roll.
	broken string
}

// readBudgets checks the update strategy.
func (d *decision) readBudgets() {
	s := d.tapp.Spec.UpdateStrategy
	d.rolling, d.forced = *s.MaxUnavailable, *s.ForceUpdate.MaxUnavailable
	d.checkBudget("spec.updateStrategy.maxUnavailable", d.rolling)
	d.checkBudget("spec.updateStrategy.forceUpdate.maxUnavailable", d.forced)
	if d.lookup(s.Template) == nil {
		field := "spec.updateStrategy.template"
		if d.in.TApp.Spec.UpdateStrategy.Template == "" {
			field = "spec.defaultTemplateName"
		}
		d.broken = fmt.Sprintf("%s names %q, which does not exist, so that it cannot be told which instances roll", field, s.Template)
		if s.Template != d.tapp.Spec.DefaultTemplateName { // else it is reported there
			d.problem(ReasonTemplateMissing, "spec.updateStrategy.template", "there is no template %q; no update starts until spec.templatePool has it, or the field names another one (%s)", s.Template, d.names())
		}
	}
}

func (d *decision) checkBudget(field string, b intstr.IntOrString) {
	if _, ok := Scale(b, 100); !ok {
		d.problem(ReasonInvalidSpec, field, "%q allows no update to start; give a number above 0 or a percentage from 1%% to 100%%", b.String())
	}
}

// Scale returns how many of total instances a budget lets be unavailable at a
// time: percentages are rounded up, and it is at least 1. It is false for a value
// that is no budget.
func Scale(b intstr.IntOrString, total int) (int, bool) {
	if b.Type == intstr.Int {
		return int(b.IntVal), b.IntVal > 0
	}
	digits, ok := strings.CutSuffix(b.StrVal, "%")
	percent, err := strconv.Atoi(digits)
	if !ok || err != nil || percent < 1 || percent > 100 {
		return 0, false
	}
	return max(1, (total*percent+99)/100), true
}

// IsBudget says whether a budget allows updates to start: a number above 0, or a
// percentage from 1% to 100%.
func IsBudget(b intstr.IntOrString) bool {
	_, ok := Scale(b, 100)
	return ok
}
