//go:debug randseednop=0
package fleet

import (
	"flag"
	"os"
	"testing"

	"tkestack.io/tapp/test/sim/drive"
)

var flags = drive.Define()

// whole shows all of a run.
var whole = flag.Bool("sim.whole", false, "show all of the run, reads too, and not the smallest one that fails")

func TestMain(m *testing.M) {
	os.Exit(flags.Main(m, func() error {
		return flags.Work(" KIND=fleet", func(o drive.Outcome) string { return o.Visited(sites(), crashBefore, crashAfter) })
	}))
}
