package tapp

import "testing"

func TestInstanceIDs(t *testing.T) {
	const advice = `: it is no instance id; ids are whole numbers from 0 without leading zeros, such as "0" or "12"`
	testRule(t, "InstanceIDs", []ruleCase{
		{"good", "{templates: {'0': canary}, statuses: {'12': Killed}}", ""},
		{"leading zero", "templates: {'01': canary}", `spec.templates[01]: Invalid value: "01"` + advice},
		{"sign", "statuses: {'-1': Killed, '+1': Killed}", `spec.statuses[+1]: Invalid value: "+1"` + advice + "\n" + `spec.statuses[-1]: Invalid value: "-1"` + advice},
		{"word", "statuses: {all: Killed}", `spec.statuses[all]: Invalid value: "all"` + advice},
		{"too large for a number", "statuses: {'99999999999999999999': Killed}", `spec.statuses[99999999999999999999]: Invalid value: "99999999999999999999"` + advice},
	})
	for _, c := range []ruleCase{
		{"in range", "{templates: {'2': canary}, statuses: {'0': Killed}}", ""},
		{"one above", "templates: {'3': canary}", `spec.templates: instance 3 has an entry, and does not exist while spec.replicas is 3`},
		{"several above", "{templates: {'2': canary, '9': canary, '10': canary, '12': canary}, statuses: {'7': Killed}}",
			"spec.templates: instances 9-10,12 have entries, and do not exist while spec.replicas is 3\nspec.statuses: instance 7 has an entry, and does not exist while spec.replicas is 3"},
		{"ids that begin at 5", "{ordinals: {start: 5}, templates: {'4': canary, '5': canary, '7': canary, '8': canary}, statuses: {'0': Killed}}",
			"spec.templates: instances 4,8 have entries, and do not exist while spec.ordinals.start is 5 and spec.replicas is 3\n" +
				"spec.statuses: instance 0 has an entry, and does not exist while spec.ordinals.start is 5 and spec.replicas is 3"},
	} {
		t.Run(c.name, func(t *testing.T) { wantLines(t, adviseInstanceIDs(tapp(t, c.spec), nil), c.want) })
	}
}
