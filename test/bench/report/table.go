package report

import (
	"fmt"
	"strings"

	"tkestack.io/tapp/test/bench/record"
)

// table in Markdown. A table without rows is empty text.
type table struct {
	head []string
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) String() string {
	if len(t.rows) == 0 {
		return "Not measured.\n"
	}
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(t.head)
	rule := make([]string, len(t.head))
	for i := range rule {
		rule[i] = "---:"
	}
	rule[0] = "---"
	line(rule)
	for _, r := range t.rows {
		line(r)
	}
	return b.String()
}

// none is what a cell shows that was not measured.
const none = "–"

// seconds of a run; none if it was not measured.
func seconds(r record.Run, ok bool) string {
	if !ok {
		return none
	}
	return duration(r.Seconds)
}

func duration(s float64) string {
	if s < 10 {
		return fmt.Sprintf("%.2f s", s)
	}
	return fmt.Sprintf("%.1f s", s)
}

// ratio of two times.
func ratio(a, b record.Run, ok bool) string {
	if !ok || b.Seconds == 0 {
		return none
	}
	return fmt.Sprintf("%.2f", a.Seconds/b.Seconds)
}

func sizeName(s record.Key) string {
	if s.Objects == 1 {
		return thousands(int64(s.Instances))
	}
	return fmt.Sprintf("%s x %s", thousands(int64(s.Objects)), thousands(int64(s.Instances)))
}

// thousands writes 10,000.
func thousands(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func gateName(gate bool) string {
	if gate {
		return "gate"
	}
	return "no gate"
}

func megabytes(n int64) string { return fmt.Sprintf("%.0f MB", float64(n)/(1<<20)) }

func kilobytes(n float64) string { return fmt.Sprintf("%.1f KB", n/1024) }

func bytesOf(n int64) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	}
	return kilobytes(float64(n))
}

// podWrites of a run for each pod.
func podWrites(r record.Run) float64 {
	n := 0
	for kind, count := range r.Writes {
		if strings.HasSuffix(kind, " pods") || strings.HasSuffix(kind, " pods/status") {
			n += count
		}
	}
	return float64(n) / float64(r.Pods())
}

// statusWrites of a run, of all objects.
func statusWrites(r record.Run) int {
	n := 0
	for kind, count := range r.Writes {
		if strings.HasSuffix(kind, "/status") && !strings.HasSuffix(kind, " pods/status") {
			n += count
		}
	}
	return n
}

func events(r record.Run) int { return r.Writes["create events"] + r.Writes["patch events"] }

func total(r record.Run) int {
	n := 0
	for _, count := range r.Writes {
		n += count
	}
	return n
}
