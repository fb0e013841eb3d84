package live

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// WriteAll of a list, in JSON, item by item: a slow reader holds no copy of it. visible says
// which keys he may see; nil: all.
func (s *Shown) WriteAll(w io.Writer, visible func(key string) bool) error {
	l := &listWriter{w: w}
	for i, text := range s.Items {
		if visible == nil || visible(s.Keys[i]) {
			l.item(text)
		}
	}
	return l.end(beside{total: l.items}, s.sums)
}

// WriteChange writes the event `change`, in JSON, for who has seen old and may see what visible
// says; nil: all.
func (s *Shown) WriteChange(w io.Writer, old *Shown, visible func(key string) bool) error {
	if visible == nil && old.ID == s.before && s.change != nil {
		_, err := w.Write(s.change)
		return err
	}
	l := &listWriter{w: w}
	var removed []string
	total := 0
	s.merge(old, func(i, k int) {
		if i >= 0 && (visible == nil || visible(s.Keys[i])) {
			total++
			if k < 0 || !same(s.Items[i], old.Items[k]) {
				l.item(s.Items[i])
			}
		} else if i < 0 && (visible == nil || visible(old.Keys[k])) {
			removed = append(removed, old.Keys[k])
		}
	})
	return l.end(beside{total: total, removed: removed}, s.sums)
}

// same compares the places in memory first: what did not change has the same.
func same(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || bytes.Equal(a, b))
}

// Page is a List in JSON of so many items after a key, of those that the caller sees; without sees all.
// degraded are members of the List, without braces.
func (s *Shown) Page(after string, limit int, sees func(key string) bool, degraded []byte) []byte {
	var items [][]byte
	b := beside{degraded: degraded}
	last, more := "", false
	for i, key := range s.Keys {
		if sees != nil && !sees(key) {
			continue
		}
		b.total++
		switch {
		case after != "" && s.compare(key, after) <= 0:
		case len(items) < limit:
			items, last = append(items, s.Items[i]), key
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
func (s *Shown) list(items [][]byte, p beside) []byte {
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
