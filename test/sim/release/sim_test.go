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

// TestSeeds runs seeds, and fails when what must hold does not, or when they did not come by
// each of the writes.
func TestSeeds(t *testing.T) {
	if flags.One != 0 {
		r := Run(t, flags.One)
		if r.Failure != nil {
			t.Error(r.Failure)
		}
		r.print(os.Stdout)
		return
	}
	visited := map[string]int{}
	flags.Each(t, someSeeds, func(seed int64) drive.Run {
		r := Run(t, seed)
		for what, n := range r.Coverage {
			visited[what] += n
		}
		return drive.Run{Steps: r.Steps, Coverage: r.Coverage, Failure: r.Failure, Explain: func() { r.print(os.Stderr) }}
	})
	for _, site := range sites() {
		for _, way := range []string{crashBefore, crashAfter} {
			if flags.Seeds == 0 && comeByAll && visited[site+" | "+way] == 0 {
				t.Errorf("in no run there was a %s at the site %s", way, site)
			}
		}
	}
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
