package sim

import (
	"encoding/json"
	"fmt"
	"os"
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
