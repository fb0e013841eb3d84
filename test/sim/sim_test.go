package sim

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestSeeds runs seeds, and fails when what must hold does not.
func TestSeeds(t *testing.T) {
	if *one != 0 {
		replay(t, *one)
		return
	}
	sum := outcome{Failures: map[int64]string{}, Coverage: Coverage{}}
	count := *seeds
	if count == 0 {
		count = someSeeds
	}
	for seed := *start; seed < *start+int64(count); seed++ {
		r := Run(t, Draw(seed), false)
		got := outcome{Seeds: 1, Steps: r.Steps, Coverage: r.Coverage, Failures: map[int64]string{}}
		if r.Failure != nil {
			got.Failures[seed] = r.Failure.Error()
			t.Errorf("seed %d: %v", seed, r.Failure)
			if len(sum.Failures) == 0 && !*tell {
				r = Shrink(t, r)
				r.Print(os.Stderr)
			}
		}
		if sum.add(got); len(sum.Failures) >= 3 {
			break
		}
	}
	if *tell {
		text, err := json.Marshal(sum)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("%s%s\n", mark, text)
	}
}

// replay shows a run, and when it failed the smallest one that fails too.
func replay(t *testing.T, seed int64) {
	r := Run(t, Draw(seed), false)
	if r.Failure != nil {
		r = Shrink(t, r)
		t.Error(r.Failure)
	}
	r.Print(os.Stdout)
}

// Equal seeds give equal runs, whatever ran before.
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
