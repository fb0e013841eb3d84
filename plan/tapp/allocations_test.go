//go:build !race

package tapp

import (
	"runtime"
	"testing"
)

// The race detector allocates, too, so that this is run without it.

// TestAllocations: a plan costs next to nothing for each pod that is well, and
// little for one that is to be made or changed. Time depends on the machine;
// allocations and their bytes do not.
func TestAllocations(t *testing.T) {
	for what, most := range map[string]struct{ allocations, bytes float64 }{
		"steady":   {3, 600},
		"patched":  {4, 700},
		"outdated": {3, 650},
		"takeover": {4, 850},
		"create":   {16, 3900},
	} {
		const n, runs = 1_000, 5
		in := benchmarks[what](t, n)
		if what == "steady" {
			if p := Compute(in); len(p.Actions)+len(p.History) > 0 || p.Wait != 0 {
				t.Fatalf("not steady: %v, wait %s", ops(p), p.Wait)
			}
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		allocations := testing.AllocsPerRun(runs, func() { Compute(in) }) / n
		runtime.ReadMemStats(&after)
		bytes := float64(after.TotalAlloc-before.TotalAlloc) / (runs + 1) / n // one more to warm up
		t.Logf("%s: %.1f allocations and %.0f bytes a pod", what, allocations, bytes)
		if allocations > most.allocations || bytes > most.bytes {
			t.Errorf("%s: %.1f allocations and %.0f bytes a pod, and at most %.0f and %.0f are allowed", what, allocations, bytes, most.allocations, most.bytes)
		}
	}
}
