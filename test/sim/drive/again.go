package drive

import (
	"fmt"
	"strings"
	"testing"
)

// Trail is what a run left, for comparison with another one.
type Trail struct {
	Digest uint64
	Steps  int
	Trace  []string
}

func (a Trail) equals(b Trail) bool { return a.Digest == b.Digest && a.Steps == b.Steps }

const (
	// seedsAgain are run twice.
	seedsAgain = 12
	// runsMore of a seed whose two runs differ, and how many of all of them may be odd.
	runsMore = 5
	mostOdd  = 2
)

// SameAgain holds that equal seeds give equal runs, whatever ran before.
//
// A run may be odd by no fault of its own: where the system takes the processor away for ten
// milliseconds, Go's runtime has another goroutine go first, and nothing can keep it from
// that. It is rare, other than what is left to chance within a run. So a seed whose runs
// differ is run more often.
func SameAgain(t *testing.T, run func(seed int64) Trail) {
	t.Helper()
	for _, difference := range differences(run) {
		t.Error(difference)
	}
}

func differences(run func(seed int64) Trail) (out []string) {
	first := map[int64]Trail{}
	for seed := int64(1); seed <= seedsAgain; seed++ {
		first[seed] = run(seed)
	}
	for seed := int64(seedsAgain); seed >= 1; seed-- {
		a, b := first[seed], run(seed)
		if a.equals(b) {
			continue
		}
		runs := []Trail{a, b}
		for range runsMore {
			runs = append(runs, run(seed))
		}
		if odd := odd(runs); odd > mostOdd {
			out = append(out, fmt.Sprintf("seed %d: %d of %d runs are not as the others; two of them differ at\n%s", seed, odd, len(runs), between(a.Trace, b.Trace)))
		}
	}
	return out
}

// odd is how many runs are not as most of them are.
func odd(runs []Trail) int {
	most := 0
	for _, a := range runs {
		same := 0
		for _, b := range runs {
			if a.equals(b) {
				same++
			}
		}
		most = max(most, same)
	}
	return len(runs) - most
}

// between shows where two traces part.
func between(a, b []string) string {
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return strings.Join(a[max(0, i-5):i+1], "\n") + "\n" + strings.Join(b[min(max(0, i-3), len(b)):min(i+1, len(b))], "\n")
		}
	}
	return "the end of the shorter one"
}
