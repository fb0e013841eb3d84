package report

import (
	"fmt"

	"tkestack.io/tapp/test/bench/record"
)

// goal is one figure to reach: the worst of what was measured counts.
type goal struct {
	what, limit string
	measured    []float64
	most        float64
	format      string
}

func (g goal) row() []string {
	if len(g.measured) == 0 {
		return []string{g.what, g.limit, none, "not measured"}
	}
	worst := g.measured[0]
	for _, m := range g.measured {
		worst = max(worst, m)
	}
	verdict := "reached"
	if worst > g.most {
		verdict = "**missed**"
	}
	return []string{g.what, g.limit, fmt.Sprintf(g.format, worst), verdict}
}

// goals are the figures that were set before it was built.
func (d data) goals() string {
	t := &table{head: []string{"what", "to reach", "measured, the worst", ""}}
	for _, g := range append(append(d.timeGoals(), d.writeGoals()...), d.footprintGoals()...) {
		t.add(g.row()...)
	}
	return t.String()
}

func (d data) timeGoals() []goal {
	var out []goal
	for _, phase := range []string{record.Create, record.InPlace} {
		for _, gate := range []bool{true, false} {
			what := phaseName(phase) + ", " + gateName(gate)
			one := goal{what: what + ": time beside the limit", limit: "1.15x", most: 1.15, format: "%.2fx"}
			// The limit has no history, status and events of a thousand objects to write.
			many := goal{what: what + ", 1,000 TApps of 10: time beside the limit", limit: "1.15x", most: 1.15, format: "%.2fx"}
			whole := goal{what: what + ", 1,000 TApps of 10: time beside the limit with its objects", limit: "1.15x", most: 1.15, format: "%.2fx"}
			for _, size := range d.sizes() {
				ours, ok := d.find(size, record.TApp, phase, gate)
				limit, has := d.limit(ours)
				switch {
				case !ok || !has || size.Pods() < 1000: // a hundred pods are over in a second, and say little
				case size.Objects == 1:
					one.measured = append(one.measured, ours.Seconds/limit.Seconds)
				default:
					many.measured = append(many.measured, ours.Seconds/limit.Seconds)
					if limit, has := d.beside(ours, record.BareObjects, phase, gate); has {
						whole.measured = append(whole.measured, ours.Seconds/limit.Seconds)
					}
				}
			}
			out = append(out, one, many, whole)
		}
	}
	linear := goal{what: "update in place: time for each pod at 10,000 beside that at 1,000", limit: "1.5x", most: 1.5, format: "%.2fx"}
	for _, gate := range []bool{true, false} {
		many, ok := d.find(record.Key{Objects: 1, Instances: 10000}, record.TApp, record.InPlace, gate)
		few, has := d.find(record.Key{Objects: 1, Instances: 1000}, record.TApp, record.InPlace, gate)
		if ok && has && many.Boot == few.Boot {
			linear.measured = append(linear.measured, many.Seconds/10/few.Seconds)
		}
	}
	restart := goal{what: "restart at 10,000 instances, until all was worked on", limit: "5 s", most: 5, format: "%.2f s"}
	for _, size := range d.sizes() {
		for _, gate := range []bool{true, false} {
			if r, ok := d.find(size, record.TApp, record.Restart, gate); ok && size.Pods() == 10000 {
				restart.measured = append(restart.measured, r.Seconds)
			}
		}
	}
	return append(out, linear, restart)
}

func (d data) writeGoals() []goal {
	var out []goal
	for _, c := range []struct {
		phase string
		gate  bool
		most  float64
	}{{record.Create, true, 2.02}, {record.Create, false, 1.02}, {record.InPlace, true, 3.05}, {record.InPlace, false, 1.05}} {
		g := goal{what: phaseName(c.phase) + ", " + gateName(c.gate) + ": pod writes for each pod", limit: fmt.Sprintf("%.2f", c.most), most: c.most, format: "%.3f"}
		for _, size := range d.sizes() {
			if r, ok := d.find(size, record.TApp, c.phase, c.gate); ok {
				g.measured = append(g.measured, podWrites(r))
			}
		}
		out = append(out, g)
	}
	status := goal{what: "status writes of one TApp within a second", limit: "2", most: 2, format: "%.0f"}
	d.each(work(), func(_ record.Key, _ string, _ bool, r record.Run) {
		status.measured = append(status.measured, float64(r.BusiestStatus))
	})
	rest := goal{what: "writes in the steady state, and after a restart", limit: "0", most: 0, format: "%.0f"}
	d.each([]string{record.Steady, record.Restart}, func(_ record.Key, _ string, _ bool, r record.Run) {
		rest.measured = append(rest.measured, float64(total(r)))
	})
	return append(out, status, rest)
}

func (d data) footprintGoals() []goal {
	cpu := goal{what: "CPU of the controller beside StatefulSet's share, for the same pods", limit: "1x", most: 1, format: "%.2fx"}
	// The share has no part of what it takes to receive the pods.
	process := goal{what: "CPU of the controller beside StatefulSet's controller alone, for the same pods", limit: "1x", most: 1, format: "%.2fx"}
	for _, size := range d.sizes() {
		for _, phase := range []string{record.Create, record.Recreate} {
			ours, ok := d.find(size, record.TApp, phase, false)
			if !ok || size.Pods() < 1000 { // shares of a few hundredths of a second are noise
				continue
			}
			if share, has := d.share(ours); has && share > 0 {
				cpu.measured = append(cpu.measured, ours.CPU[record.TApp]/share)
			}
			if set, has := d.recreating(ours, record.StatefulSetAlone); has {
				process.measured = append(process.measured, ours.CPU[record.TApp]/set.CPU[controllerManager])
			}
		}
	}
	memory := goal{what: "memory of the controller for each of 10,000 pods", limit: "15 KB", most: 15, format: "%.1f KB"}
	whole := goal{what: "memory of the controller at 10,000 pods", limit: "150 MB", most: 150, format: "%.0f MB"}
	for _, size := range d.sizes() {
		for _, gate := range []bool{true, false} {
			if r, ok := d.largest(size, gate); ok && size.Pods() == 10000 {
				memory.measured = append(memory.measured, perPodMemory(r)/1024)
				whole.measured = append(whole.measured, float64(r.Peak)/(1<<20))
			}
		}
	}
	plan := goal{what: "a plan for 10,000 instances", limit: "50 ms", most: 50, format: "%.0f ms"}
	for _, m := range d.Micro {
		if ok := len(m.Name) > 14 && m.Name[:8] == "Compute/" && m.Name[len(m.Name)-6:] == "/10000"; ok {
			plan.measured = append(plan.measured, m.Nanos/1e6)
		}
	}
	return []goal{cpu, process, memory, whole, plan}
}
