package plugin

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// colour is the part of an escape sequence that chooses a colour; "" is none.
type colour string

const (
	plain  colour = ""
	bold   colour = "1"
	grey   colour = "2"
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
)

// painter colours text, or leaves it as it is.
type painter bool

// newPainter colours on a terminal, unless NO_COLOR is set (https://no-color.org).
func newPainter(w io.Writer) painter {
	return painter(isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb")
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// paint colours a text, of which it escapes what is not to be printed.
func (p painter) paint(c colour, text string) string {
	text = clean(text)
	if !p || c == plain || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// clean escapes what does not print. Names of images, messages of containers and reasons
// are others' words: they could have a terminal show what is not so, or do worse.
func clean(text string) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	var b strings.Builder
	for _, r := range text {
		if isUnprintable(r) {
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// cleanLines is clean for texts of several lines.
func cleanLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = clean(lines[i])
	}
	return strings.Join(lines, "\n")
}

// isUnprintable: control characters, and those that turn text around; but tabs are fine.
func isUnprintable(r rune) bool { return r != '\t' && !unicode.IsPrint(r) }

// colourOf a state of an instance.
func colourOf(s tappv1.InstanceStatus) colour {
	switch s {
	case tappv1.InstanceRunning:
		return green
	case tappv1.InstanceKilled, tappv1.InstanceSucc:
		return grey
	case tappv1.InstanceFailed, tappv1.InstancePodFailed, tappv1.InstanceUnknown:
		return red
	}
	return yellow
}

// cell of a table.
type cell struct {
	text   string
	colour colour
}

// table is rows of cells; the first row is the header.
type table [][]cell

func (t *table) add(texts ...string) {
	row := make([]cell, len(texts))
	for i := range texts {
		row[i].text = texts[i]
	}
	*t = append(*t, row)
}

// print aligns the columns as kubectl does, three blanks apart. A text/tabwriter would
// count the escape sequences of colours.
func (t table) print(w io.Writer, p painter) error {
	var widths []int
	for _, row := range t {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			row[i].text = clean(c.text)
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i].text))
		}
	}
	var b strings.Builder
	for _, row := range t {
		last := len(row) - 1
		for last > 0 && row[last].text == "" {
			last--
		}
		for i, c := range row[:last+1] {
			b.WriteString(p.paint(c.colour, c.text))
			if i < last {
				b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.text)+3))
			}
		}
		b.WriteByte('\n')
	}
	_, err := fmt.Fprint(w, b.String())
	return err
}

// colouredDiff colours the lines that a unified diff adds and removes.
func colouredDiff(text []byte, p painter) []byte {
	if !p {
		return []byte(cleanLines(string(text)))
	}
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		c := plain
		switch {
		case strings.HasPrefix(line, "+"):
			c = green
		case strings.HasPrefix(line, "-"):
			c = red
		}
		content, hadEnd := strings.CutSuffix(line, "\n")
		b.WriteString(p.paint(c, content))
		if hadEnd {
			b.WriteByte('\n')
		}
	}
	return []byte(b.String())
}
