package sim

import (
	"fmt"
	"os"
	"testing"

	"tkestack.io/tapp/test/sim/drive"
)

// TestSeeds runs seeds, and fails when what must hold does not.
func TestSeeds(t *testing.T) {
	if *one != 0 {
		replay(t, *one)
		return
	}
	var sum drive.Outcome
	count := *seeds
	if count == 0 {
		count = someSeeds
	}
	for seed := *start; seed < *start+int64(count); seed++ {
		r := Run(t, Draw(seed, *with, *without), false)
		got := drive.Outcome{Seeds: 1, Steps: r.Steps, Coverage: r.Coverage, Failures: map[int64]string{}}
		if r.Failure != nil {
			got.Failures[seed] = r.Failure.Error()
			t.Errorf("seed %d: %v", seed, r.Failure)
			if len(sum.Failures) == 0 && !*tell {
				r = Shrink(t, r)
				r.Print(os.Stderr)
			}
		}
		if sum.Add(got); len(sum.Failures) >= 3 {
			break
		}
	}
	if *tell {
		sum.Tell(t)
	}
}

// mostWays is how many runs may go straight for a crash point until one gets there.
const mostWays = 30

// TestCrashPoints has a process crash at each point there is, whatever the first seed is.
func TestCrashPoints(t *testing.T) {
	var sum drive.Outcome
	for _, p := range points() {
		for seed := *start; sum.Coverage[p.String()] == 0; seed++ {
			if seed == *start+mostWays {
				t.Errorf("%d runs went straight for %q, and none got there", mostWays, p)
				break
			}
			r := Run(t, Straight(seed, p), false)
			got := drive.Outcome{Seeds: 1, Steps: r.Steps, Coverage: r.Coverage, Failures: map[int64]string{}}
			if r.Failure != nil {
				got.Failures[seed] = fmt.Sprintf("straight for %s: %v", p, r.Failure)
				t.Errorf("seed %d, straight for %s: %v", seed, p, r.Failure)
				if !*tell {
					Shrink(t, r).Print(os.Stderr)
				}
			}
			sum.Add(got)
		}
	}
	if *tell {
		sum.Tell(t)
	}
}

// replay shows a run, and when it failed the smallest one that fails too.
func replay(t *testing.T, seed int64) {
	r := Run(t, Draw(seed, *with, *without), false)
	if r.Failure != nil {
		r = Shrink(t, r)
		t.Error(r.Failure)
	}
	r.Print(os.Stdout)
}
