package release

import (
	"fmt"
	"io"
	"os"
	"testing"

	"tkestack.io/tapp/test/sim/drive"
)

// sites of writes of the operator.
func sites() (out []string) {
	for _, resource := range []string{"secrets", "configmaps", "deployments", "jobs"} {
		for verb, of := range map[string]bool{"create": resource == "secrets", "update": resource == "secrets", "patch": resource != "secrets", "delete": true} {
			if of {
				out = append(out, verb+" "+resource)
			}
		}
	}
	return out
}

// TestSeeds runs seeds, and fails when what must hold does not.
func TestSeeds(t *testing.T) {
	if flags.One != 0 {
		r := Run(t, flags.One)
		if r.Failure != nil {
			t.Error(r.Failure)
		}
		r.print(os.Stdout)
		return
	}
	flags.Each(t, someSeeds, func(seed int64) drive.Run {
		r := Run(t, seed)
		return drive.Run{Steps: r.Steps, Coverage: r.Coverage, Failure: r.Failure, Explain: func() { r.print(os.Stderr) }}
	})
}

func (r Result) print(w io.Writer) {
	for _, line := range r.Trace {
		fmt.Fprintln(w, line)
	}
}

// Equal seeds give equal runs.
func TestSameAgain(t *testing.T) {
	drive.SameAgain(t, func(seed int64) drive.Trail {
		r := Run(t, seed)
		return drive.Trail{Digest: r.Digest, Steps: r.Steps, Trace: r.Trace}
	})
}
