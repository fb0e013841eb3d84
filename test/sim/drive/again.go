package drive

import (
	"strings"
	"testing"
)

// Trail is what a run left, for comparison with another one.
type Trail struct {
	Digest uint64
	Steps  int
	Trace  []string
}

// SameAgain holds that equal seeds give equal runs, whatever ran before.
func SameAgain(t *testing.T, run func(seed int64) Trail) {
	t.Helper()
	first := map[int64]Trail{}
	for seed := int64(1); seed <= 12; seed++ {
		first[seed] = run(seed)
	}
	for seed := int64(12); seed >= 1; seed-- {
		a, b := first[seed], run(seed)
		if a.Digest == b.Digest && a.Steps == b.Steps {
			continue
		}
		for i := range a.Trace {
			if i >= len(b.Trace) || a.Trace[i] != b.Trace[i] {
				t.Errorf("seed %d differs at\n%s\n%s", seed, strings.Join(a.Trace[max(0, i-5):i+1], "\n"), strings.Join(b.Trace[max(0, i-3):min(i+1, len(b.Trace))], "\n"))
				break
			}
		}
	}
}
