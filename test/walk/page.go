// Package walk goes through a page of the documentation as its reader would: it runs
// the commands one after the other, and compares what they print with what the page
// shows, so that a page cannot go stale.
//
//	page.go   the commands of a page
//	run.go    running them
//	same.go   what of an output is the same each time
package walk

import (
	"slices"
	"strings"
)

// Step is a command of a page, and what the page shows as its output.
type Step struct {
	Command string
	// Output may have lines of three dots, each of which stands for any lines.
	Output string
	// Section is the heading of the second level that the command is under.
	Section string

	// first and end are the lines of the output in the page, indent is before each.
	first, end int
	indent     string
}

const (
	fence  = "```"
	marked = fence + "console" // blocks of another kind are not run
	prompt = "$ "
)

// Read finds the commands of a page: in blocks of the kind console, the lines that
// begin with a dollar sign, and what follows a backslash at the end of a line. The
// blocks may be indented.
func Read(page string) []Step {
	var steps []Step
	inside, begun, section, indent := false, false, "", ""
	for n, line := range strings.Split(page, "\n") {
		if trimmed := strings.TrimLeft(line, " "); !inside && trimmed == marked {
			indent = line[:len(line)-len(trimmed)]
		}
		line = strings.TrimPrefix(line, indent)
		command, prompted := strings.CutPrefix(line, prompt)
		switch {
		case !inside:
			inside, begun = line == marked, false
			if heading, found := strings.CutPrefix(line, "## "); found {
				section = heading
			}
		case line == fence:
			inside, indent = false, ""
		case prompted:
			steps = append(steps, Step{Command: command, Section: section, first: n + 1, end: n + 1, indent: indent})
			begun = true
		case !begun: // output of nothing
		default:
			s := &steps[len(steps)-1]
			if s.first == n && strings.HasSuffix(s.Command, `\`) {
				s.Command += "\n" + line
				s.first, s.end = n+1, n+1
				continue
			}
			s.Output += line + "\n"
			s.end = n + 1
		}
	}
	return steps
}

// Write returns the page with other outputs of some of its steps.
func Write(page string, steps []Step, outputs []string) string {
	lines := strings.Split(page, "\n")
	for i, s := range slices.Backward(steps[:len(outputs)]) {
		var output []string
		if outputs[i] != "" {
			output = strings.Split(s.indent+strings.ReplaceAll(strings.TrimSuffix(outputs[i], "\n"), "\n", "\n"+s.indent), "\n")
		}
		lines = slices.Replace(lines, s.first, s.end, output...)
	}
	return strings.Join(lines, "\n")
}
