package release

import (
	"os"
	"testing"

	"tkestack.io/tapp/test/sim/drive"
)

var flags = drive.Define()

func TestMain(m *testing.M) {
	os.Exit(flags.Main(m, func() error {
		return flags.Work(" KIND=release", func(o drive.Outcome) string { return o.Visited(sites(), crashBefore, crashAfter) })
	}))
}
