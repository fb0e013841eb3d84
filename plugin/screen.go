package plugin

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"tkestack.io/tapp/plan/ids"
)

// screen shows frames, which are lists of lines. On a terminal (live) a frame replaces
// the one before; elsewhere it is appended if it differs.
type screen struct {
	w       io.Writer
	painter painter
	live    bool
	last    []string
}

func newScreen(w io.Writer, moving bool) *screen {
	return &screen{w: w, painter: newPainter(w), live: moving && isTerminal(w)}
}

// Show is show, for package fleet.
func (s *screen) Show(lines []string) { s.show(lines) }

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
	_, _ = fmt.Fprint(s.w, b.String()) // if it fails, nobody could read an error either
}

// barWidth is the width of the progress bar in characters.
const barWidth = 40

// frame shows the rollout: a bar, and what holds which instances.
func frame(o *observed, p painter) []string {
	out := []string{p.paint(bold, o.TApp.Name) + "  " + orNone(o.TApp.Status.UpdateRevision)}
	if o.unobserved() {
		return append(out, fmt.Sprintf("the controller has not seen generation %d yet", o.TApp.Generation))
	}
	state := o.progress()
	out = append(out, bar(&state, p)+fmt.Sprintf("  %d of %d done, %d available", state.done, state.desired, state.available))
	if state.surplus > 0 {
		out = append(out, fmt.Sprintf("pods that are to go: %d", state.surplus))
	}
	for _, problem := range o.Plan.Problems {
		out = append(out, p.paint(red, problem.Field+": "+problem.Why))
	}
	if refused := o.refused(); refused != "" {
		out = append(out, p.paint(red, refused))
	}
	var t table
	for _, b := range state.blocks {
		t = append(t, []cell{{text: "  " + ids.Ranges(b.ids)}, {b.reason, yellow}, {text: b.why}})
	}
	var text strings.Builder
	if err := t.print(&text, p); err == nil && len(t) > 0 {
		out = append(out, strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")...)
	}
	return out
}

// bar of the desired instances: # done, + not available, . still to update.
func bar(state *progress, p painter) string {
	desired := max(1, state.desired)
	done := state.done * barWidth / desired
	if state.desired == 0 {
		done = barWidth
	}
	unavailable := min(barWidth-done, (state.unavailable*barWidth+desired-1)/desired)
	return "[" + p.paint(green, strings.Repeat("#", done)) + p.paint(yellow, strings.Repeat("+", unavailable)) +
		strings.Repeat(".", barWidth-done-unavailable) + "]"
}

// fit cuts lines to the size of the terminal. The cursor cannot go back over more.
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

// clip shortens a line to a width. Escape sequences have no width, and are kept.
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
