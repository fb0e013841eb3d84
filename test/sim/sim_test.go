package sim

import (
	"fmt"
	"os"
	"testing"

	"tkestack.io/tapp/test/sim/drive"
)

// TestSeeds runs seeds, and fails when what must hold does not.
func TestSeeds(t *testing.T) {
	if flags.One != 0 {
		replay(t, flags.One)
		return
	}
	flags.Each(t, someSeeds, func(seed int64) drive.Run {
		r := Run(t, Draw(seed, *with, *without), false)
		return drive.Run{Steps: r.Steps, Coverage: r.Coverage, Failure: r.Failure, Explain: func() { Shrink(t, r).Print(os.Stderr) }}
	})
}

// mostWays is how many runs may go straight for a crash point until one gets there.
const mostWays = 30

// TestCrashPoints has a process crash at each point there is, whatever the first seed is.
func TestCrashPoints(t *testing.T) {
	var sum drive.Outcome
	for _, p := range points() {
		for seed := flags.Start; sum.Coverage[p.String()] == 0; seed++ {
			if seed == flags.Start+mostWays {
				t.Errorf("%d runs went straight for %q, and none got there", mostWays, p)
				break
			}
			r := Run(t, Straight(seed, p), false)
			got := drive.Outcome{Seeds: 1, Steps: r.Steps, Coverage: r.Coverage, Failures: map[int64]string{}}
			if r.Failure != nil {
				got.Failures[seed] = fmt.Sprintf("straight for %s: %v", p, r.Failure)
				t.Errorf("seed %d, straight for %s: %v", seed, p, r.Failure)
				if !flags.Tell {
					Shrink(t, r).Print(os.Stderr)
				}
			}
			sum.Add(got)
		}
	}
	if flags.Tell {
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
