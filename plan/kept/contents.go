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

// Contents is which content instances had, by their id.
type Contents []span

// Last is which content an instance has or, without a pod, had last.
type Last struct {
	// Hash of its template; empty: not known.
	Hash string
	// Follows: without a pod it goes on to its present template unless the TApp is paused,
	// since its last pod failed by itself, or since it was started again.
	Follows bool
}

// span of ids that had one content.
type span struct {
	first, last int
	Last
}

// markFollows is the end of a range of instances that follow.
const markFollows = "!"

// ReadContents reads status.contents: template hash to ranges of ids such as "0-3,7!". What
// is no range counts for nothing.
func ReadContents(stored map[string]string) Contents {
	var out Contents
	for _, hash := range slices.Sorted(maps.Keys(stored)) {
		for text := range strings.SplitSeq(stored[hash], ",") {
			text, follows := strings.CutSuffix(text, markFollows)
			from, to, isRange := strings.Cut(text, "-")
			if !isRange {
				to = from
			}
			first, err := strconv.Atoi(from)
			last, errLast := strconv.Atoi(to)
			if err == nil && errLast == nil && 0 <= first && first <= last {
				out = append(out, span{first, last, Last{hash, follows}})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	return out
}

// Of an instance.
func (c Contents) Of(id int) Last {
	at, found := slices.BinarySearchFunc(c, id, func(s span, id int) int { return cmp.Compare(s.first, id) })
	if !found {
		at--
	}
	if at < 0 || c[at].last < id {
		return Last{}
	}
	return c[at].Last
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
func (w *Writer) Add(id int, had Last) {
	if w.open == nil {
		w.open, w.out = map[string]*span{}, map[string]string{}
	}
	s := w.open[had.Hash]
	if s != nil && s.last == id-1 && s.Follows == had.Follows && !w.full {
		s.last = id
		return
	}
	// A range takes two ids, which may be one digit longer at its end, and three marks.
	cost := 2*len(strconv.Itoa(id)) + 4
	if s == nil {
		cost += len(had.Hash)
	}
	if w.full = w.full || w.bytes+cost > MaxBytes; w.full {
		return
	}
	w.bytes += cost
	w.close(s)
	w.open[had.Hash] = &span{id, id, had}
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
	if s.Follows {
		text += markFollows
	}
	if before := w.out[s.Hash]; before != "" {
		text = before + "," + text
	}
	w.out[s.Hash] = text
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
