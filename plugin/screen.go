package plugin

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	plan "tkestack.io/tapp/plan/tapp"
)

// screen shows frames of lines: one in the place of the last on a terminal, each
// that differs from the last one below it elsewhere.
type screen struct {
	w       io.Writer
	painter painter
	live    bool
	last    []string
}

func (s *screen) show(lines []string) {
	if s.live {
		lines = s.fit(lines)
	}
	if slices.Equal(lines, s.last) {
		return
	}
	var b strings.Builder
	if s.live && len(s.last) > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\x1b[J", len(s.last)) // up, and clear to the end
	}
	for _, line := range lines {
		b.WriteString(line + "\n")
	}
	s.last = lines
	_, _ = fmt.Fprint(s.w, b.String()) // of a terminal that is gone nobody reads an error either
}

// barWidth is that of the progress bar, in signs.
const barWidth = 40

// frame shows the rollout: a bar, and what holds which instances.
func frame(o *observed, p painter) []string {
	out := []string{p.paint(bold, o.tapp.Name) + "  " + orNone(o.tapp.Status.UpdateRevision)}
	if o.unseen() {
		return append(out, fmt.Sprintf("the controller has not seen generation %d yet", o.tapp.Generation))
	}
	state := o.progress()
	out = append(out, bar(&state, p)+fmt.Sprintf("  %d of %d done, %d available", state.done, state.wanted, state.available))
	if state.leaving > 0 {
		out = append(out, fmt.Sprintf("pods that are to go: %d", state.leaving))
	}
	for _, problem := range o.plan.Problems {
		out = append(out, p.paint(red, problem.Field+": "+problem.Why))
	}
	var t table
	for _, b := range state.blocks {
		t = append(t, []cell{{text: "  " + plan.Ranges(b.ids)}, {b.reason, yellow}, {text: b.why}})
	}
	var text strings.Builder
	if err := t.print(&text, p); err == nil && len(t) > 0 {
		out = append(out, strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")...)
	}
	return out
}

// bar has a sign per share of the instances: # done, + away for now, . to come.
func bar(state *progress, p painter) string {
	wanted := max(1, state.wanted)
	done := state.done * barWidth / wanted
	if state.wanted == 0 {
		done = barWidth
	}
	away := min(barWidth-done, (state.away*barWidth+wanted-1)/wanted)
	return "[" + p.paint(green, strings.Repeat("#", done)) + p.paint(yellow, strings.Repeat("+", away)) +
		strings.Repeat(".", barWidth-done-away) + "]"
}

// fit cuts what a terminal has no room for: it could not go back over it.
func (s *screen) fit(lines []string) []string {
	file, ok := s.w.(*os.File)
	if !ok {
		return lines
	}
	width, height, err := term.GetSize(int(file.Fd()))
	if err != nil || width < barWidth || height < 4 {
		return lines
	}
	if len(lines) >= height {
		more := fmt.Sprintf("  ... %d more", len(lines)-height+2)
		lines = append(slices.Clone(lines[:height-2]), more)
	}
	out := make([]string, len(lines))
	for i := range lines {
		out[i] = clip(lines[i], width-1)
	}
	return out
}

// clip shortens a line to a width. Escape sequences have none, and stay.
func clip(line string, width int) string {
	var b strings.Builder
	escape, column := false, 0
	for _, r := range line {
		switch {
		case r == '\x1b':
			escape = true
		case escape:
			escape = r != 'm'
		case column == width:
			continue
		default:
			column++
		}
		b.WriteRune(r)
	}
	return b.String()
}
