//go:debug randseednop=0
package sim

import (
	"context"
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
	with    = flag.String("sim.with", "", "every run has this class of faults; any: each has some")
	without = flag.String("sim.without", "", "no run has this class of faults")
	tell    = flag.Bool("sim.tell", false, "tell of the outcome on standard output, for the process that started this one")
)

// TestMain has one goroutine run at a time: of two that could, the runtime would pick
// either.
func TestMain(m *testing.M) {
	flag.Parse()
	runtime.GOMAXPROCS(1)
	utilruntime.ErrorHandlers = nil // they sleep by a clock of their own
	if *workers > 0 {
		if err := runSeeds(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// runSeeds runs many, and the ways to the crash points that they did not come to.
func runSeeds() error {
	classes := []string{"-sim.with=" + *with, "-sim.without=" + *without}
	sum, err := drive.Seeds(*start, *seeds, *workers, classes, func(o drive.Outcome) string {
		visited, of, _ := Coverage(o.Coverage).Visited()
		return fmt.Sprintf("crashes at %d of %d points", visited, of)
	})
	if _, _, missing := Coverage(sum.Coverage).Visited(); len(missing) > 0 && err == nil {
		var got drive.Outcome
		got, err = drive.Process(context.Background(), "TestCrashPoints", *start, len(missing), classes...)
		sum.Add(got)
	}
	_, _, missing := Coverage(sum.Coverage).Visited()
	for _, p := range missing {
		err = errors.Join(err, fmt.Errorf("no process crashed at the point %q", p))
	}
	return errors.Join(err, sum.Conclude(""))
}
