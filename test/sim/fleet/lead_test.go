//go:build !race

package fleet

import (
	"os"
	"testing"
)

// mostWays is how many runs go straight for a point before it is given up.
const mostWays = 40

// TestCrashPoints has a process crash before and after each write that there is, whatever
// the first seed is, with nothing else that goes wrong.
func TestCrashPoints(t *testing.T) {
	for _, site := range append(sites(), chartSites()...) {
		for _, crash := range []string{crashBefore, crashAfter} {
			for seed := flags.Start; ; seed++ {
				r := Run(t, Straight(seed, site, crash), false)
				if r.Failure != nil {
					t.Errorf("seed %d, straight for %s | %s: %v", seed, site, crash, r.Failure)
					shrink(t, r).print(os.Stderr)
				}
				if r.Failure != nil || r.Coverage[site+" | "+crash] > 0 {
					break
				}
				if seed == flags.Start+mostWays {
					t.Errorf("%d runs went straight for %s | %s, and none got there", mostWays, site, crash)
					break
				}
			}
		}
	}
}
