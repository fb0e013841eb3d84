//go:build !race

package app

import (
	"testing"

	"tkestack.io/tapp/test/sim/drive"
)

// Equal seeds give equal runs, whatever ran before. With the race detector they do not:
// it has the runtime pick goroutines at random. `make sim KIND=app` begins with this test.
func TestSameAgain(t *testing.T) {
	drive.SameAgain(t, func(seed int64) drive.Trail {
		r := Run(t, Draw(seed))
		return drive.Trail{Digest: r.Digest, Steps: r.Steps, Trace: r.Trace}
	})
}
