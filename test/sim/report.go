package sim

import (
	"fmt"
	"io"
	"strings"
)

// Print tells people of a run: what was planned, what happened, and what was wrong.
func (r Result) Print(w io.Writer) {
	fmt.Fprintf(w, "seed %d, faults until step %d\n", r.Plan.Seed, r.Plan.Horizon)
	for _, c := range r.Plan.Classes {
		fmt.Fprintf(w, "  class  %s\n", c)
	}
	for _, e := range r.Plan.Edits {
		if e.Step < r.Plan.Horizon {
			fmt.Fprintf(w, "  user   %s\n", e)
		}
	}
	for _, f := range r.Plan.Faults {
		if f.Step < r.Plan.Horizon {
			fmt.Fprintf(w, "  fault  %s\n", f)
		}
	}
	fmt.Fprintf(w, "step         time  what happened (ca, cb... are processes of the controller)\n")
	for _, line := range r.Trace {
		if len(line) > mostLine {
			line = strings.ToValidUTF8(line[:mostLine], "") + "..."
		}
		fmt.Fprintln(w, line)
	}
	if r.Failure != nil {
		fmt.Fprintf(w, "%v\n", r.Failure)
		return
	}
	fmt.Fprintf(w, "nothing was wrong in %d steps\n", r.Steps)
}

// mostLine is how much of a line people get to see.
const mostLine = 300
