package plugin

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/intstr"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
)

// isForced says whether the instance gets to a new template by force: its
// template is not the rolling one.
func (o *observed) isForced(i *plan.Instance) bool {
	return i.Template != o.spec.UpdateStrategy.Template
}

// atMost says how many instances a budget takes away at a time; false: none,
// because it is no budget.
func (o *observed) atMost(forced bool) (int, bool) {
	return plan.Scale(o.budgetField(forced), o.wantedCount())
}

func (o *observed) budgetField(forced bool) intstr.IntOrString {
	if forced {
		return *o.spec.UpdateStrategy.ForceUpdate.MaxUnavailable
	}
	return *o.spec.UpdateStrategy.MaxUnavailable
}

// wantedCount counts the instances that are to run.
func (o *observed) wantedCount() int {
	n := 0
	for k := range o.plan.Instances {
		i := &o.plan.Instances[k]
		if number(i.ID) < replicasOf(o.tapp) && o.tapp.Spec.Statuses[i.ID] != tappv1.InstanceKilled && !isEnd(i) {
			n++
		}
	}
	return n
}

// budget in words: "1", or "3 (30% of 10)".
func (o *observed) budget(forced bool) string {
	field := o.budgetField(forced)
	n, ok := o.atMost(forced)
	switch {
	case !ok:
		return fmt.Sprintf("none (%s is no budget)", field.String())
	case field.Type == intstr.String:
		return fmt.Sprintf("%d (%s of %d)", n, field.StrVal, o.wantedCount())
	}
	return field.String()
}
