package report

import (
	"fmt"
	"slices"
	"strings"

	"tkestack.io/tapp/test/bench/record"
)

// work are the phases in which pods change.
func work() []string {
	return []string{record.Create, record.InPlace, record.Rolling, record.Recreate, record.Zero}
}

// phaseName is what the page calls a phase.
func phaseName(phase string) string {
	return map[string]string{
		record.Create: "create", record.InPlace: "update in place", record.Rolling: "rolling, 10%",
		record.OneByOne: "one at a time", record.Recreate: "recreate", record.Zero: "scale to zero", record.Restart: "restart", record.Steady: "steady",
	}[phase]
}

// beside is what another contender did with as many instances, while the machine ran
// as it did for ours: the same program is half as fast on another one.
func (d data) beside(ours record.Run, contender, phase string, gate bool) (record.Run, bool) {
	r, ok := d.find(ours.Key, contender, phase, gate)
	if !ok || r.Boot != ours.Boot {
		return record.Run{}, false
	}
	return r, true
}

// limit is what the bare client did for the same wish.
func (d data) limit(ours record.Run) (record.Run, bool) {
	return d.beside(ours, record.Bare, ours.Phase, ours.Gate)
}

// statefulSet is what a StatefulSet did for the same wish.
func (d data) statefulSet(ours record.Run) (record.Run, bool) {
	return d.recreating(ours, record.StatefulSet)
}

// recreating is what a contender did for the same wish that updates by recreating, and
// has no gate.
func (d data) recreating(ours record.Run, contender string) (record.Run, bool) {
	phase := ours.Phase
	if phase == record.InPlace {
		phase = record.Recreate
	}
	return d.beside(ours, contender, phase, false)
}

// each calls f for what TApp was measured with.
func (d data) each(phases []string, f func(size record.Key, phase string, gate bool, r record.Run)) {
	for _, size := range d.sizes() {
		for _, phase := range phases {
			for _, gate := range []bool{true, false} {
				if r, ok := d.find(size, record.TApp, phase, gate); ok {
					f(size, phase, gate, r)
				}
			}
		}
	}
}

func (d data) speed() string {
	t := &table{head: []string{"instances", "phase", "", "limit", "TApp", "StatefulSet", "TApp / limit", "TApp / StatefulSet"}}
	d.each(work(), func(size record.Key, phase string, gate bool, ours record.Run) {
		limit, hasLimit := d.limit(ours)
		set, hasSet := d.statefulSet(ours)
		other := seconds(set, hasSet)
		if hasSet && (phase == record.InPlace || phase == record.Rolling) {
			other += " (recreates)"
		}
		t.add(sizeName(size), phaseName(phase), gateName(gate), seconds(limit, hasLimit), seconds(ours, true), other,
			ratio(ours, limit, hasLimit), ratio(ours, set, hasSet))
	})
	return t.String()
}

// objects shows what part of the time beside the limit is that of the objects above
// the pods.
func (d data) objects() string {
	t := &table{head: []string{"instances", "phase", "", "limit", "limit with its objects", "TApp", "TApp / limit", "TApp / limit with its objects"}}
	d.each(work(), func(size record.Key, phase string, gate bool, ours record.Run) {
		limit, hasLimit := d.limit(ours)
		if whole, ok := d.beside(ours, record.BareObjects, phase, gate); ok {
			t.add(sizeName(size), phaseName(phase), gateName(gate), seconds(limit, hasLimit), seconds(whole, ok), seconds(ours, true),
				ratio(ours, limit, hasLimit), ratio(ours, whole, ok))
		}
	})
	return t.String()
}

func (d data) writes() string {
	t := &table{head: []string{"instances", "phase", "", "limit", "TApp", "StatefulSet", "TApp's by kind", "status writes", "most in 1 s for one TApp", "events", "conflicts"}}
	d.each(work(), func(size record.Key, phase string, gate bool, ours record.Run) {
		perPod := func(r record.Run, ok bool) string {
			if !ok {
				return none
			}
			return fmt.Sprintf("%.3f", podWrites(r))
		}
		t.add(sizeName(size), phaseName(phase), gateName(gate), perPod(d.limit(ours)), perPod(ours, true),
			perPod(d.statefulSet(ours)), kinds(ours), thousands(int64(statusWrites(ours))), fmt.Sprint(ours.BusiestStatus),
			thousands(int64(events(ours))), fmt.Sprint(ours.Conflicts))
	})
	return t.String()
}

// kinds of writes to pods, for each pod.
func kinds(r record.Run) string {
	var out []string
	for kind, n := range r.Writes {
		if verb, is := strings.CutSuffix(kind, " pods"); is {
			out = append(out, fmt.Sprintf("%s %.2f", verb, float64(n)/float64(r.Pods())))
		} else if kind == "patch pods/status" {
			out = append(out, fmt.Sprintf("gate %.2f", float64(n)/float64(r.Pods())))
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func (d data) statusBytes() string {
	t := &table{head: []string{"instances", "phase", "", "TApp", "for each instance", "StatefulSet"}}
	d.each(work(), func(size record.Key, phase string, gate bool, ours record.Run) {
		other := none
		if set, ok := d.statefulSet(ours); ok {
			other = bytesOf(set.StatusBytes)
		}
		t.add(sizeName(size), phaseName(phase), gateName(gate), bytesOf(ours.StatusBytes),
			fmt.Sprintf("%.0f B", float64(ours.StatusBytes)/float64(ours.Pods())), other)
	})
	return t.String()
}

func (d data) memory() string {
	t := &table{head: []string{"instances", "", "without pods", "peak", "in phase", "for each pod"}}
	for _, size := range d.sizes() {
		for _, gate := range []bool{true, false} {
			if r, ok := d.largest(size, gate); ok {
				t.add(sizeName(size), gateName(gate), megabytes(r.Empty), megabytes(r.Peak), phaseName(r.Phase), kilobytes(perPodMemory(r)))
			}
		}
	}
	return t.String()
}

func perPodMemory(r record.Run) float64 { return float64(r.Peak-r.Empty) / float64(r.Pods()) }

// largest is the run of TApp with the highest peak.
func (d data) largest(size record.Key, gate bool) (record.Run, bool) {
	var most record.Run
	for _, phase := range record.Phases() {
		if r, ok := d.find(size, record.TApp, phase, gate); ok && r.Peak > most.Peak {
			most = r
		}
	}
	return most, most.Peak > 0
}

func (d data) delay() string {
	t := &table{head: []string{"instances", "phase", "", "TApp: first write", "all pods there", "last status write", "StatefulSet: first write"}}
	d.each(work(), func(size record.Key, phase string, gate bool, ours record.Run) {
		other := none
		if set, ok := d.statefulSet(ours); ok {
			other = fmt.Sprintf("%.0f ms", set.FirstWrite*1000)
		}
		t.add(sizeName(size), phaseName(phase), gateName(gate), fmt.Sprintf("%.0f ms", ours.FirstWrite*1000), duration(ours.Seconds),
			duration(ours.LastWrite), other)
	})
	return t.String()
}

// away shows how long pods with the gate were out of service for an update in place.
func (d data) away() string {
	t := &table{head: []string{"instances", "phase", "TApp: median", "99%", "longest", "limit: median"}}
	d.each(work(), func(size record.Key, phase string, gate bool, ours record.Run) {
		if ours.Away == nil {
			return
		}
		other := none
		if limit, ok := d.limit(ours); ok && limit.Away != nil {
			other = duration(limit.Away.Median)
		}
		t.add(sizeName(size), phaseName(phase), duration(ours.Away.Median), duration(ours.Away.P99), duration(ours.Away.Most), other)
	})
	return t.String()
}

func (d data) restart() string {
	t := &table{head: []string{"instances", "", "caches filled", "worked on all", "writes", "CPU"}}
	d.each([]string{record.Restart}, func(size record.Key, _ string, gate bool, r record.Run) {
		t.add(sizeName(size), gateName(gate), duration(r.Ready), duration(r.Seconds), fmt.Sprint(total(r)), duration(r.CPU[record.TApp]))
	})
	return t.String()
}

func (d data) steady() string {
	t := &table{head: []string{"instances", "", "watched", "writes", "TApp's CPU", "StatefulSet: writes"}}
	d.each([]string{record.Steady}, func(size record.Key, _ string, gate bool, r record.Run) {
		other := none
		if set, ok := d.statefulSet(r); ok {
			other = fmt.Sprint(total(set))
		}
		t.add(sizeName(size), gateName(gate), duration(r.Seconds), fmt.Sprint(total(r)), duration(r.CPU[record.TApp]), other)
	})
	return t.String()
}
