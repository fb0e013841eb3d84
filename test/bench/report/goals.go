package report

import (
	"fmt"
	"slices"

	"tkestack.io/tapp/test/bench/record"
)

// figure is one measured quantity. The worst of its measurements counts.
type figure struct {
	what, format string
	measured     []float64
}

func (f figure) worst() float64 { return slices.Max(f.measured) }

// text of the worst measurement; none if nothing was measured.
func (f figure) text() string {
	if len(f.measured) == 0 {
		return none
	}
	return fmt.Sprintf(f.format, f.worst())
}

// goal is a figure that must not be above a limit.
type goal struct {
	figure
	limit string
	most  float64
}

func (g goal) row() []string {
	verdict := "reached"
	switch {
	case len(g.measured) == 0:
		verdict = "not measured"
	case g.worst() > g.most:
		verdict = "**missed**"
	}
	return []string{g.what, g.limit, g.text(), verdict}
}

// goals were set before TApp was built.
func (d data) goals() string {
	t := &table{head: []string{"what", "goal", "measured, the worst", "result"}}
	for _, g := range slices.Concat(d.timeGoals(), d.writeGoals(), d.footprintGoals(), d.fleetGoals()) {
		t.add(g.row()...)
	}
	return t.String()
}

// withoutGoal are figures that compare TApp with less than it has to do. The bare
// client writes no TApps, revisions, events and statuses. StatefulSet's share leaves
// out what it takes to receive the pods.
func (d data) withoutGoal() string {
	t := &table{head: []string{"what", "measured, the worst"}}
	var figures []figure
	for _, phase := range []string{record.Create, record.InPlace} {
		for _, gate := range []bool{true, false} {
			figures = append(figures, d.timeBeside(record.Bare, manySmall, phase, gate))
		}
	}
	for _, f := range append(figures, d.cpuBesideShare()) {
		t.add(f.what, f.text())
	}
	return t.String()
}

const (
	oneLarge  = false
	manySmall = true
)

// timeBeside compares the times of TApp and of a contender: for one TApp, or for many
// small ones.
func (d data) timeBeside(contender string, many bool, phase string, gate bool) figure {
	f := figure{what: phaseName(phase) + ", " + gateName(gate), format: "%.2fx"}
	if many {
		f.what += ", 1,000 TApps of 10"
	}
	f.what += ": time beside the limit"
	if contender == record.BareObjects {
		f.what += " with its objects"
	}
	for _, size := range d.sizes() {
		ours, ok := d.find(size, record.TApp, phase, gate)
		other, has := d.beside(ours, contender, phase, gate)
		if ok && has && size.Pods() >= 1000 && many == (size.Objects > 1) { // 100 pods take a second, which is mostly noise
			f.measured = append(f.measured, ours.Seconds/other.Seconds)
		}
	}
	return f
}

func (d data) timeGoals() []goal {
	var out []goal
	for _, phase := range []string{record.Create, record.InPlace} {
		for _, gate := range []bool{true, false} {
			out = append(out,
				goal{figure: d.timeBeside(record.Bare, oneLarge, phase, gate), limit: "1.15x", most: 1.15},
				goal{figure: d.timeBeside(record.BareObjects, manySmall, phase, gate), limit: "1.15x", most: 1.15})
		}
	}
	linear := goal{figure: figure{what: "update in place: time for each pod at 10,000 beside that at 1,000", format: "%.2fx"}, limit: "1.5x", most: 1.5}
	for _, gate := range []bool{true, false} {
		many, ok := d.find(record.Key{Objects: 1, Instances: 10000}, record.TApp, record.InPlace, gate)
		few, has := d.find(record.Key{Objects: 1, Instances: 1000}, record.TApp, record.InPlace, gate)
		if ok && has && many.Boot == few.Boot {
			linear.measured = append(linear.measured, many.Seconds/10/few.Seconds)
		}
	}
	restart := goal{figure: figure{what: "restart at 10,000 instances, until all was worked on", format: "%.2f s"}, limit: "5 s", most: 5}
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
		g := goal{
			figure: figure{what: phaseName(c.phase) + ", " + gateName(c.gate) + ": pod writes for each pod", format: "%.3f"},
			limit:  fmt.Sprintf("%.2f", c.most), most: c.most,
		}
		for _, size := range d.sizes() {
			if r, ok := d.find(size, record.TApp, c.phase, c.gate); ok {
				g.measured = append(g.measured, podWrites(r))
			}
		}
		out = append(out, g)
	}
	status := goal{figure: figure{what: "status writes of one TApp within a second", format: "%.0f"}, limit: "2", most: 2}
	d.each(work(), func(_ record.Key, _ string, _ bool, r record.Run) {
		status.measured = append(status.measured, float64(r.BusiestStatus))
	})
	rest := goal{figure: figure{what: "writes in the steady state, and after a restart", format: "%.0f"}, limit: "0", most: 0}
	d.each([]string{record.Steady, record.Restart}, func(_ record.Key, _ string, _ bool, r record.Run) {
		rest.measured = append(rest.measured, float64(total(r)))
	})
	return append(out, status, rest)
}

// cpuBesideShare compares CPU with what the StatefulSet controller adds to a
// kube-controller-manager that receives the pods in any case.
func (d data) cpuBesideShare() figure {
	f := figure{what: "CPU of the controller beside StatefulSet's share, for the same pods", format: "%.2fx"}
	d.eachFootprint(func(ours record.Run) {
		if share, has := d.share(ours); has && share > 0 {
			f.measured = append(f.measured, ours.CPU[record.TApp]/share)
		}
	})
	return f
}

// eachFootprint calls do for the runs whose CPU is compared.
func (d data) eachFootprint(do func(ours record.Run)) {
	for _, size := range d.sizes() {
		for _, phase := range []string{record.Create, record.Recreate} {
			if ours, ok := d.find(size, record.TApp, phase, false); ok && size.Pods() >= 1000 { // less is a few hundredths of a second: noise
				do(ours)
			}
		}
	}
}

func (d data) footprintGoals() []goal {
	cpu := goal{figure: figure{what: "CPU of the controller beside StatefulSet's controller alone, for the same pods", format: "%.2fx"}, limit: "1x", most: 1}
	d.eachFootprint(func(ours record.Run) {
		if set, has := d.recreating(ours, record.StatefulSetAlone); has {
			cpu.measured = append(cpu.measured, ours.CPU[record.TApp]/set.CPU[controllerManager])
		}
	})
	memory := goal{figure: figure{what: "memory of the controller for each of 10,000 pods", format: "%.1f KB"}, limit: "15 KB", most: 15}
	whole := goal{figure: figure{what: "memory of the controller at 10,000 pods", format: "%.0f MB"}, limit: "150 MB", most: 150}
	for _, size := range d.sizes() {
		for _, gate := range []bool{true, false} {
			if r, ok := d.largest(size, gate); ok && size.Pods() == 10000 {
				memory.measured = append(memory.measured, perPodMemory(r)/1024)
				whole.measured = append(whole.measured, float64(r.Peak)/(1<<20))
			}
		}
	}
	plan := goal{figure: figure{what: "a plan for 10,000 instances", format: "%.0f ms"}, limit: "50 ms", most: 50}
	for _, m := range d.Micro {
		if ok := len(m.Name) > 14 && m.Name[:8] == "Compute/" && m.Name[len(m.Name)-6:] == "/10000"; ok {
			plan.measured = append(plan.measured, m.Nanos/1e6)
		}
	}
	return append([]goal{cpu, memory, whole, plan}, d.chartGoals()...)
}

// chartGoals are about releases of Helm charts. The limit of a process that only starts is
// what it had before Helm's engine was linked (version 9b97418, 44.6 MB), and 5 MB.
func (d data) chartGoals() []goal {
	release := goal{figure: figure{what: "a release of 440 KB: rendered in a child process, recorded, and planned until all is applied", format: "%.2f s"}, limit: "1 s", most: 1}
	start := goal{figure: figure{what: "memory of a process that only starts", format: "%.1f MB"}, limit: "49.6 MB", most: 49.6}
	all := 0.0
	for _, part := range []string{"Child440KB", "Record440KB", "Install440KB"} {
		m, measured := d.microOf(part)
		if !measured {
			all = 0
			break
		}
		all += m.Nanos / 1e9
	}
	if all > 0 {
		release.measured = []float64{all}
	}
	if m, measured := d.microOf(record.Start); measured {
		start.measured = []float64{m.Bytes / (1 << 20)}
	}
	return []goal{release, start}
}

func (d data) microOf(name string) (record.Micro, bool) {
	i := slices.IndexFunc(d.Micro, func(m record.Micro) bool { return m.Name == name })
	if i < 0 {
		return record.Micro{}, false
	}
	return d.Micro[i], true
}
