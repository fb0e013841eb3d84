package report

import (
	"fmt"
	"strings"

	"tkestack.io/tapp/test/bench/record"
)

const controllerManager = "kube-controller-manager"

// share is what the StatefulSet controller used of kube-controller-manager's CPU in
// a phase: what this used, less what it used while the bare client made the same
// pods (its other controllers watch pods too), each without what it uses when
// nothing happens.
func (d data) share(ours record.Run) (float64, bool) {
	set, ok := d.statefulSet(ours)
	if !ok {
		return 0, false
	}
	phase := ours.Phase
	if phase == record.InPlace || phase == record.Rolling {
		phase = record.Recreate // that is what it does to the pods
	}
	bare, ok := d.beside(ours, record.Bare, phase, false)
	if !ok {
		return 0, false
	}
	idle := d.idle(ours.Key)
	used := func(r record.Run) float64 { return r.CPU[controllerManager] - idle*r.Window }
	return max(0, used(set)-used(bare)), true
}

// idle is the part of a core that kube-controller-manager uses when nothing
// happens: with that size if this was measured, else with any.
func (d data) idle(size record.Key) float64 {
	sizes := append([]record.Key{size}, d.sizes()...)
	for _, s := range sizes {
		if r, ok := d.find(s, record.StatefulSet, record.Steady, false); ok {
			return r.CPU[controllerManager] / r.Window
		}
	}
	return 0
}

// perThousand pods.
func perThousand(seconds float64, k record.Key) float64 { return seconds * 1000 / float64(k.Pods()) }

func (d data) cpu() string {
	t := &table{head: []string{"instances", "phase", "", "TApp", "StatefulSet's share", "StatefulSet's controller alone", "whole kube-controller-manager",
		"the limit's client"}}
	d.each(work(), func(size record.Key, phase string, gate bool, ours record.Run) {
		share, alone, whole, client := none, none, none, none
		if s, ok := d.share(ours); ok {
			share = duration(perThousand(s, size))
			set, _ := d.statefulSet(ours)
			whole = duration(perThousand(set.CPU[controllerManager], size))
		}
		if set, ok := d.recreating(ours, record.StatefulSetAlone); ok {
			alone = duration(perThousand(set.CPU[controllerManager], size))
		}
		if limit, ok := d.beside(ours, record.Bare, phase, gate); ok && limit.Client > 0 {
			client = duration(perThousand(limit.Client, size))
		}
		t.add(sizeName(size), phaseName(phase), gateName(gate), duration(perThousand(ours.CPU[record.TApp], size)), share, alone, whole, client)
	})
	return t.String()
}

// kubelet shows whether KWOK held anybody up.
func (d data) kubelet() string {
	t := &table{head: []string{"instances", "phase", "", "contender", "KWOK's answer: median", "99%", "statuses a second", "KWOK's part of all CPU"}}
	for _, size := range d.sizes() {
		for _, phase := range []string{record.Create, record.InPlace} {
			for _, gate := range []bool{true, false} {
				for _, contender := range []string{record.Bare, record.TApp, record.StatefulSet} {
					r, ok := d.find(size, contender, phase, gate)
					if !ok || r.Kubelet == nil {
						continue
					}
					t.add(sizeName(size), phaseName(phase), gateName(gate), contender, duration(r.Kubelet.Median), duration(r.Kubelet.P99),
						fmt.Sprintf("%.0f", r.Kubelet.Rate), fmt.Sprintf("%.0f%%", 100*r.CPU[record.KWOK]/sum(r.CPU)))
				}
			}
		}
	}
	return t.String()
}

// alone shows how fast KWOK is when it has nobody beside it.
func (d data) alone() string {
	t := &table{head: []string{"instances", "KWOK alone: statuses a second", "fastest contender: pods a second"}}
	for _, size := range d.sizes() {
		alone, ok := d.find(size, record.KWOK, record.Create, false)
		if !ok || alone.Kubelet == nil {
			continue
		}
		fastest := 0.0
		for _, contender := range []string{record.Bare, record.TApp, record.StatefulSet} {
			if r, ok := d.find(size, contender, record.Create, false); ok {
				fastest = max(fastest, float64(r.Pods())/r.Seconds)
			}
		}
		t.add(sizeName(size), fmt.Sprintf("%.0f", alone.Kubelet.Rate), fmt.Sprintf("%.0f", fastest))
	}
	return t.String()
}

func sum(m map[string]float64) float64 {
	s := 0.0
	for _, v := range m {
		s += v
	}
	return s
}

// micro is what go test -bench measured.
func (d data) micro() string {
	t := &table{head: []string{"benchmark", "time", "memory", "allocations"}}
	for _, m := range d.Micro {
		t.add(strings.ReplaceAll(m.Name, "/", " "), nanos(m.Nanos), bytesOf(int64(m.Bytes)), thousands(int64(m.Allocs)))
	}
	return t.String()
}

func nanos(n float64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.2f s", n/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f ms", n/1e6)
	}
	return fmt.Sprintf("%.1f µs", n/1e3)
}
