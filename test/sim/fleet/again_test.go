//go:build !race

package fleet

import (
	"strings"
	"testing"
)

// Equal seeds give equal runs, whatever ran before. With the race detector they do not:
// it has the runtime pick goroutines at random. `make sim` begins with this test.
func TestSameAgain(t *testing.T) {
	first := map[int64]Result{}
	for seed := int64(1); seed <= 12; seed++ {
		first[seed] = Run(t, Draw(seed), true)
	}
	for seed := int64(12); seed >= 1; seed-- {
		a, b := first[seed], Run(t, Draw(seed), true)
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
