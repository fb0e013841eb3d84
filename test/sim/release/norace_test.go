//go:build !race

package release

import "testing"

// someSeeds are run where no number is given.
const someSeeds = 60

// TestCrashPoints: the seeds crash the operator before and after each of its writes. The race
// detector would make it ten times as long.
func TestCrashPoints(t *testing.T) {
	visited := map[string]int{}
	for seed := range int64(someSeeds) {
		r := Run(t, seed+1)
		if r.Failure != nil {
			t.Errorf("seed %d: %v", seed+1, r.Failure)
		}
		for what, n := range r.Coverage {
			visited[what] += n
		}
	}
	for _, site := range sites() {
		for _, way := range []string{crashBefore, crashAfter} {
			if visited[site+" | "+way] == 0 {
				t.Errorf("in no run there was a %s at the site %s", way, site)
			}
		}
	}
}
