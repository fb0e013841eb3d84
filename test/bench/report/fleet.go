package report

import (
	"fmt"

	"tkestack.io/tapp/test/bench/record"
)

// fleetNames say what is measured of a fleet, in the order of the page.
func fleetNames() []struct{ name, what string } {
	return []struct{ name, what string }{
		{record.FleetPart, "the last member's part is written, after the request to scale"},
		{record.FleetStatus, "the hub tells of it, after the last member's status"},
		{record.FleetStep, "the next member of a rollout is written to, after the last status of the one before"},
		{record.FleetOffline, "a member that fell silent is Offline"},
		{record.FleetManyAppSets, "restart, until all was worked on"},
		{record.FleetManyMembers, "restart, until all was worked on"},
	}
}

func (d data) fleetGoals() []goal {
	one := func(name, what, limit string, most float64, of func(record.Fleet) float64, format string) goal {
		g := goal{figure: figure{what: "fleet: " + what, format: format}, limit: limit, most: most}
		if m, ok := d.FindFleet(name); ok {
			g.measured = append(g.measured, of(m))
		}
		return g
	}
	longest := func(m record.Fleet) float64 { return m.Most }
	out := []goal{
		one(record.FleetPart, "a part is written, after its spec", "1 s", 1, longest, "%.2f s"),
		one(record.FleetStatus, "a status is on the hub, after the member's", "1 s", 1, longest, "%.2f s"),
		one(record.FleetStep, "a rollout's next cluster is written to, after the one before", "2 s", 2, longest, "%.2f s"),
		one(record.FleetOffline, "a dead member is Offline", "15 to 20 s", 20, longest, "%.1f s"),
		one(record.FleetManyMembers, "restart with 200 members of 100 parts each", "10 s", 10, longest, "%.1f s"),
		one(record.FleetManyMembers, "memory with 200 members of 100 parts each", "150 MB", 150, func(m record.Fleet) float64 { return float64(m.Memory) / (1 << 20) }, "%.0f MB"),
		one(record.FleetManyAppSets, "restart with 1,000 AppSets in 3 members", "10 s", 10, longest, "%.1f s"),
	}
	plan := goal{figure: figure{what: "fleet: a rollout in 200 clusters with 20 podSets each is planned", format: "%.1f ms"}, limit: "20 ms", most: 20}
	if m, measured := d.microOf("Rollout"); measured {
		plan.measured = append(plan.measured, m.Nanos/1e6)
	}
	return append(out, plan)
}

// fleets is what was measured of a fleet.
func (d data) fleets() string {
	t := &table{head: []string{"what", "members", "AppSets", "shortest", "median", "longest", "of", "memory", "writes", "load"}}
	for _, f := range fleetNames() {
		m, ok := d.FindFleet(f.name)
		if !ok {
			continue
		}
		memory := none
		if m.Memory > 0 {
			memory = fmt.Sprintf("%d MB", m.Memory>>20)
		}
		seconds := func(s float64) string { return fmt.Sprintf("%.2f s", s) }
		t.add(f.what, fmt.Sprint(m.Members), fmt.Sprint(m.AppSets), seconds(m.Least), seconds(m.Median), seconds(m.Most), fmt.Sprint(m.Count), memory, fmt.Sprint(m.Writes), fmt.Sprintf("%.1f", m.Load))
	}
	return t.String()
}
