package kept

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// MaxBytes bounds status.contents: hashes and ranges of ids.
const MaxBytes = 32 << 10

// Contents is which content instances had: the template hash by instance id.
type Contents []span

// span of ids that had one content.
type span struct {
	first, last int
	hash        string
}

// ReadContents reads status.contents: template hash to ranges of ids such as "0-3,7". What
// is no range counts for nothing.
func ReadContents(stored map[string]string) Contents {
	var out Contents
	for _, hash := range slices.Sorted(maps.Keys(stored)) {
		for text := range strings.SplitSeq(stored[hash], ",") {
			from, to, isRange := strings.Cut(text, "-")
			if !isRange {
				to = from
			}
			first, err := strconv.Atoi(from)
			last, errLast := strconv.Atoi(to)
			if err == nil && errLast == nil && 0 <= first && first <= last {
				out = append(out, span{first, last, hash})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	return out
}

// Of an instance: the hash of the template that it had; empty: not known.
func (c Contents) Of(id int) string {
	at, found := slices.BinarySearchFunc(c, id, func(s span, id int) int { return cmp.Compare(s.first, id) })
	if !found {
		at--
	}
	if at < 0 || c[at].last < id {
		return ""
	}
	return c[at].hash
}

// Writer makes status.contents.
type Writer struct {
	open  map[string]*span
	out   map[string]string
	bytes int
	full  bool
}

// Add what the next instance, in ascending order of ids, had. Instances for which there is
// no room left are not told of.
func (w *Writer) Add(id int, hash string) {
	if w.open == nil {
		w.open, w.out = map[string]*span{}, map[string]string{}
	}
	s := w.open[hash]
	if s != nil && s.last == id-1 && !w.full {
		s.last = id
		return
	}
	// A range takes two ids, which may be one digit longer at its end, and two marks.
	cost := 2*len(strconv.Itoa(id)) + 3
	if s == nil {
		cost += len(hash)
	}
	if w.full = w.full || w.bytes+cost > MaxBytes; w.full {
		return
	}
	w.bytes += cost
	w.close(s)
	w.open[hash] = &span{id, id, hash}
}

// close a range.
func (w *Writer) close(s *span) {
	if s == nil {
		return
	}
	text := strconv.Itoa(s.first)
	if s.last > s.first {
		text += "-" + strconv.Itoa(s.last)
	}
	if before := w.out[s.hash]; before != "" {
		text = before + "," + text
	}
	w.out[s.hash] = text
}

// Stored is status.contents; nil: none was added.
func (w *Writer) Stored() map[string]string {
	for _, s := range w.open {
		w.close(s)
	}
	w.open = nil
	if len(w.out) == 0 {
		return nil
	}
	return w.out
}
