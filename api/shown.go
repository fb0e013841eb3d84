package api

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// shown is what a topic shows at one time: the items of a list, or one object. It never
// changes. Items that are as they were share their bytes with the shown before.
type shown struct {
	// single: it is one object, the only item.
	single bool
	// keys of the items in their order, and the items in JSON.
	keys  []string
	items [][]byte
	// sums are members of the list beside the items, as a JSON object; nil: none.
	sums []byte
	// id is different where anything is.
	id string
	// compare two keys in the order of the list.
	compare func(a, b string) int

	// before and change are what led here, encoded for all who saw that.
	before string
	change []byte
}

// item of a list.
type item struct {
	key   string
	value any
}

// byNumber compares ids: the shorter one is the smaller one, since none begins with 0.
func byNumber(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) }

// newList makes a list of items, which are sorted by compare.
func newList(items []item, sums any, compare func(a, b string) int, before *shown) (*shown, error) {
	slices.SortFunc(items, func(a, b item) int { return compare(a.key, b.key) })
	s := &shown{compare: compare, keys: make([]string, len(items)), items: make([][]byte, len(items))}
	for i, it := range items {
		text, err := json.Marshal(it.value)
		if err != nil {
			return nil, fmt.Errorf("writing %s: %w", it.key, err)
		}
		s.keys[i], s.items[i] = it.key, text
	}
	if sums != nil {
		var err error
		if s.sums, err = json.Marshal(sums); err != nil {
			return nil, fmt.Errorf("writing sums: %w", err)
		}
	}
	s.follow(before)
	return s, nil
}

// newObject makes one object.
func newObject(value any, before *shown) (*shown, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("writing an object: %w", err)
	}
	s := &shown{single: true, keys: []string{""}, items: [][]byte{text}, compare: func(string, string) int { return 0 }}
	s.follow(before)
	return s, nil
}

// follow shares what did not change, and makes the id.
func (s *shown) follow(before *shown) {
	if before != nil {
		if slices.Equal(s.keys, before.keys) {
			s.keys = before.keys
		}
		s.merge(before, func(i, old int) {
			if i >= 0 && old >= 0 && bytes.Equal(s.items[i], before.items[old]) {
				s.items[i] = before.items[old]
			}
		})
	}
	h := sha256.New()
	for i, text := range s.items {
		_, _ = h.Write([]byte(s.keys[i])) // a hash takes all
		_, _ = h.Write([]byte{0})
		_, _ = h.Write(text)
	}
	_, _ = h.Write(s.sums)
	s.id = hex.EncodeToString(h.Sum(nil)[:12])
	if before == nil || before.id == s.id {
		return
	}
	var change bytes.Buffer
	if s.writeChange(&change, before, nil) == nil { // a buffer takes all
		s.before, s.change = before.id, change.Bytes()
	}
}

// merge calls f with the places of each key in both; -1: it is not there.
func (s *shown) merge(old *shown, f func(i, old int)) {
	for i, k := 0, 0; i < len(s.keys) || k < len(old.keys); {
		order := 0
		switch {
		case i == len(s.keys):
			order = 1
		case k == len(old.keys):
			order = -1
		case s.keys[i] != old.keys[k]:
			order = s.compare(s.keys[i], old.keys[k])
		}
		switch {
		case order < 0:
			f(i, -1)
			i++
		case order > 0:
			f(-1, k)
			k++
		default:
			f(i, k)
			i++
			k++
		}
	}
}

// writeAll of a list, in JSON, item by item: a slow reader holds no copy of it. visible says
// which keys he may see; nil: all.
func (s *shown) writeAll(w io.Writer, visible func(key string) bool) error {
	l := &listWriter{w: w}
	for i, text := range s.items {
		if visible == nil || visible(s.keys[i]) {
			l.item(text)
		}
	}
	return l.end(beside{total: l.items}, s.sums)
}

// writeChange writes the event `change`, in JSON, for who has seen old and may see what visible
// says; nil: all.
func (s *shown) writeChange(w io.Writer, old *shown, visible func(key string) bool) error {
	if visible == nil && old.id == s.before && s.change != nil {
		_, err := w.Write(s.change)
		return err
	}
	l := &listWriter{w: w}
	var removed []string
	total := 0
	s.merge(old, func(i, k int) {
		if i >= 0 && (visible == nil || visible(s.keys[i])) {
			total++
			if k < 0 || !same(s.items[i], old.items[k]) {
				l.item(s.items[i])
			}
		} else if i < 0 && (visible == nil || visible(old.keys[k])) {
			removed = append(removed, old.keys[k])
		}
	})
	return l.end(beside{total: total, removed: removed}, s.sums)
}

// same compares the places in memory first: what did not change has the same.
func same(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || bytes.Equal(a, b))
}

// page is a List in JSON of so many items after a key, of those that the caller sees; without sees all.
// degraded are members of the List, without braces.
func (s *shown) page(after string, limit int, sees func(key string) bool, degraded []byte) []byte {
	var items [][]byte
	b := beside{degraded: degraded}
	last, more := "", false
	for i, key := range s.keys {
		if sees != nil && !sees(key) {
			continue
		}
		b.total++
		switch {
		case after != "" && s.compare(key, after) <= 0:
		case len(items) < limit:
			items, last = append(items, s.items[i]), key
		default:
			more = true
		}
	}
	if more {
		b.next = last
	}
	return s.list(items, b)
}

// beside is what a list has beside its items.
type beside struct {
	total    int
	next     string
	removed  []string
	degraded []byte // members, without braces
}

// list of items, as a List in JSON.
func (s *shown) list(items [][]byte, p beside) []byte {
	size := 64 + len(s.sums) + len(p.degraded)
	for _, text := range items {
		size += len(text) + 1
	}
	var b bytes.Buffer
	b.Grow(size)
	l := &listWriter{w: &b}
	for _, text := range items {
		l.item(text)
	}
	_ = l.end(p, s.sums) // a buffer takes all
	return b.Bytes()
}

// listWriter writes a List in JSON. It goes on to nowhere after an error.
type listWriter struct {
	w     io.Writer
	items int
	err   error
}

func (l *listWriter) raw(text []byte) {
	if l.err == nil {
		_, l.err = l.w.Write(text)
	}
}

func (l *listWriter) item(text []byte) {
	if l.items == 0 {
		l.raw([]byte(`{"items":[`))
	} else {
		l.raw([]byte(","))
	}
	l.items++
	l.raw(text)
}

// end of the items, with what is beside them.
func (l *listWriter) end(p beside, sums []byte) error {
	var b bytes.Buffer
	if l.items == 0 {
		b.WriteString(`{"items":[`)
	}
	fmt.Fprintf(&b, `],"total":%d`, p.total)
	write := func(name string, value any) {
		text, err := json.Marshal(value)
		if err == nil {
			fmt.Fprintf(&b, `,%q:%s`, name, text)
		}
	}
	if p.next != "" {
		write("continue", p.next)
	}
	if len(p.removed) > 0 {
		write("removed", p.removed)
	}
	for _, members := range [][]byte{bytes.TrimSuffix(bytes.TrimPrefix(sums, []byte("{")), []byte("}")), p.degraded} {
		if len(members) > 0 {
			b.WriteByte(',')
			b.Write(members)
		}
	}
	b.WriteByte('}')
	l.raw(b.Bytes())
	return l.err
}
