package report

import (
	"fmt"

	"tkestack.io/tapp/test/bench/record"
)

// Goals of each step, in milliseconds.
const (
	answerMedian = 10
	answerP99    = 30
)

// stepName is what the page calls a step.
func stepName(step string) string {
	return map[string]string{
		record.Drained: "pod seen not ready -> image patched", record.Back: "container back -> gate open",
		record.Gone: "pod gone -> created anew", record.Ready: "instance ready -> next one taken", record.Asked: "user's change -> first write",
	}[step]
}

// answers shows how soon controllers answer what happens to a few instances.
func (d data) answers() string {
	t := &table{head: []string{"step", "controller", "p50", "p99", "p50 until it asks the API server", "n", "goal: p50 under 10 ms, p99 under 30"}}
	for _, step := range record.Steps() {
		for _, size := range d.sizes() {
			for _, c := range []struct {
				contender, name string
				gate            bool
			}{
				{record.TApp, "TApp, gate", true}, {record.TApp, "TApp, no gate", false},
				{record.StatefulSet, "StatefulSet", false}, {record.StatefulSetAlone, "StatefulSet alone", false},
			} {
				r, _ := d.find(size, c.contender, record.OneByOne, c.gate)
				a, ok := r.Answers[step]
				if !ok {
					continue
				}
				verdict := none // which others do not have
				if c.contender == record.TApp {
					verdict = reachedAnswer(a)
				}
				t.add(stepName(step), c.name, milliseconds(a.Median), milliseconds(a.P99), milliseconds(a.Reaction), fmt.Sprint(a.Count), verdict)
			}
		}
	}
	return t.String()
}

func reachedAnswer(a record.Answer) string {
	if a.Median*1000 < answerMedian && a.P99*1000 < answerP99 {
		return "reached"
	}
	return "**missed**"
}

func milliseconds(s float64) string { return fmt.Sprintf("%.1f ms", s*1000) }
