//go:debug randseednop=0
package app

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"tkestack.io/tapp/test/sim/drive"
)

var (
	seeds   = flag.Int("sim.seeds", 0, "how many seeds; 0: some")
	start   = flag.Int64("sim.start", 1, "the first seed")
	one     = flag.Int64("sim.seed", 0, "only this seed, with its trace; 0: no")
	workers = flag.Int("sim.workers", 0, "processes that run at a time; 0: all in this one")
	tell    = flag.Bool("sim.tell", false, "tell of the outcome on standard output, for the process that started this one")
)

// TestMain has one goroutine run at a time: of two that could, the runtime would pick
// either.
func TestMain(m *testing.M) {
	flag.Parse()
	runtime.GOMAXPROCS(1)
	utilruntime.ErrorHandlers = nil // they sleep by a clock of their own
	if *workers > 0 {
		sum, err := drive.Seeds(*start, *seeds, *workers, nil, visited)
		if err = errors.Join(err, sum.Conclude(" KIND=app")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// visited says at how many sites of writes processes crashed.
func visited(o drive.Outcome) string {
	n := 0
	for _, site := range sites() {
		for _, point := range []string{crashBefore, crashAfter} {
			if o.Coverage[site+" | "+point] > 0 {
				n++
			}
		}
	}
	return fmt.Sprintf("crashes at %d of %d points", n, 2*len(sites()))
}
