package walk

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// changing is what differs from run to run, inside of words.
var changing = []struct {
	is   *regexp.Regexp
	name string
}{
	{regexp.MustCompile(`\b[0-9a-f]{16}\b`), "<hash>"},
	{regexp.MustCompile(`\d+\.\d+\.\d+\.\d+`), "<ip>"},
	{regexp.MustCompile(`\b(kwok-|node)\d+\b`), "<node>"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "<time>"},
}

// age is a word of its own.
var age = regexp.MustCompile(`^(\d+[dhms])+$`)

// uid is the one thing of which it matters whether it is the same as before.
var uid = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// elided stands for any lines in what is wanted.
const elided = "..."

// Common is a text without what differs from run to run: ages, times, nodes,
// addresses, hashes, the width of blanks. UIDs are numbered in the order in which they
// come first.
func Common(text string) string { return strings.Join(names{}.common(text), "\n") + "\n" }

// names are the numbers of UIDs.
type names map[string]string

func (n names) common(text string) []string {
	var lines []string
	for line := range strings.Lines(strings.TrimRight(text, "\n \t")) {
		words := strings.Fields(line)
		for i, w := range words {
			if age.MatchString(w) {
				words[i] = "<age>"
			}
		}
		line = uid.ReplaceAllStringFunc(strings.Join(words, " "), func(id string) string {
			if n[id] == "" {
				n[id] = fmt.Sprintf("<uid %d>", len(n)+1)
			}
			return n[id]
		})
		for _, c := range changing {
			line = c.is.ReplaceAllString(line, c.name)
		}
		lines = append(lines, line)
	}
	return lines
}

// comparison is of what is wanted, output for output, with what is printed. A UID in
// one of them stands for the same one in the other throughout.
type comparison struct{ wanted, printed names }

func newComparison() *comparison { return &comparison{names{}, names{}} }

// diff returns "" if the two are the same, but for what differs from run to run.
func (c *comparison) diff(want, got string) string {
	w, g := c.wanted.common(want), c.printed.common(got)
	if matches(w, g) {
		return ""
	}
	return string(diff.Diff("want", []byte(strings.Join(w, "\n")+"\n"), "got", []byte(strings.Join(g, "\n")+"\n")))
}

func matches(want, got []string) bool {
	i := slices.Index(want, elided)
	if i < 0 {
		return slices.Equal(want, got)
	}
	if len(got) < i || !slices.Equal(want[:i], got[:i]) {
		return false
	}
	for from := i; from <= len(got); from++ {
		if matches(want[i+1:], got[from:]) {
			return true
		}
	}
	return false
}
