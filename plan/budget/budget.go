// Package budget reads how many instances updates may have unavailable.
package budget

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// Budgets of updates, as numbers.
type Budgets struct {
	// Rolling is for the instances of spec.updateStrategy.template, Forced for all
	// others.
	Rolling, Forced Budget
}

// Budget is how many instances may be unavailable because of updates.
type Budget struct {
	// MaxUnavailable of the desired instances; percentages are rounded up.
	MaxUnavailable int
	// Valid is false where the spec's value is no budget: then no update of an
	// available instance starts.
	Valid bool
}

// Scale returns how many of total instances a budget lets be unavailable at a
// time: percentages are rounded up, and it is at least 1. It is false for a value
// that is no budget, such as +5% or 005%, which other readers take for something else.
func Scale(b intstr.IntOrString, total int) (int, bool) {
	if b.Type == intstr.Int {
		return int(b.IntVal), b.IntVal > 0
	}
	digits, ok := strings.CutSuffix(b.StrVal, "%")
	percent, err := strconv.Atoi(digits)
	if !ok || err != nil || percent < 1 || percent > 100 || strconv.Itoa(percent) != digits {
		return 0, false
	}
	return max(1, (total*percent+99)/100), true
}

// Is says whether a budget allows updates to start: a number above 0, or a
// percentage from 1% to 100%.
func Is(b intstr.IntOrString) bool {
	_, ok := Scale(b, 100)
	return ok
}
