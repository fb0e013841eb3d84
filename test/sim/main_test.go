//go:debug randseednop=0
package sim

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"

	"tkestack.io/tapp/test/sim/drive"
)

var (
	flags   = drive.Define()
	with    = flag.String("sim.with", "", "every run has this class of faults; any: each has some; empty: every thirty-second has some")
	without = flag.String("sim.without", "", "no run has this class of faults")
)

func TestMain(m *testing.M) { os.Exit(flags.Main(m, runSeeds)) }

// runSeeds runs many, and the ways to the crash points that they did not come to.
func runSeeds() error {
	classes := []string{"-sim.with=" + *with, "-sim.without=" + *without}
	sum, err := drive.Seeds(flags.Start, flags.Seeds, flags.Workers, classes, func(o drive.Outcome) string {
		visited, of, _ := Coverage(o.Coverage).Visited()
		return fmt.Sprintf("crashes at %d of %d points", visited, of)
	})
	if _, _, missing := Coverage(sum.Coverage).Visited(); len(missing) > 0 && err == nil {
		var got drive.Outcome
		got, err = drive.Process(context.Background(), "TestCrashPoints", flags.Start, len(missing), classes...)
		sum.Add(got)
	}
	_, _, missing := Coverage(sum.Coverage).Visited()
	for _, p := range missing {
		err = errors.Join(err, fmt.Errorf("no process crashed at the point %q", p))
	}
	return errors.Join(err, sum.Conclude(""))
}
