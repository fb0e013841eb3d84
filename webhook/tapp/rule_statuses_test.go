package tapp

import "testing"

func TestStatuses(t *testing.T) {
	testRule(t, "Statuses", []ruleCase{
		{"good", "statuses: {'0': Killed, '1': Running, '2': Succ}", ""},
		{"unknown", "statuses: {'0': Stopped}", `spec.statuses[0]: Invalid value: "Stopped": it is no status; Killed stops the instance, Running or no entry runs it`},
	})
	for _, c := range []ruleCase{
		{"effective", "statuses: {'0': Killed, '1': Running}", ""},
		{"without effect", "statuses: {'0': Failed, '1': Succ, '2': Failed}",
			"spec.statuses[0,2]: Failed has no effect; Killed stops an instance, Running or no entry runs it\nspec.statuses[1]: Succ has no effect; Killed stops an instance, Running or no entry runs it"},
	} {
		t.Run(c.name, func(t *testing.T) { wantLines(t, adviseStatuses(tapp(t, c.spec), nil), c.want) })
	}
}
