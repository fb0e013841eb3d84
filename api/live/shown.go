package live

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Shown is what a topic shows at one time: the items of a list, or one object. It never
// changes. Items that are as they were share their bytes with the shown before.
type Shown struct {
	// Single: it is one object, the only item.
	Single bool
	// Keys of the items in their order, and the items in JSON.
	Keys  []string
	Items [][]byte
	// sums are members of the list beside the items, as a JSON object; nil: none.
	sums []byte
	// ID is different where anything is.
	ID string
	// compare two keys in the order of the list.
	compare func(a, b string) int

	// before and change are what led here, encoded for all who saw that.
	before string
	change []byte
}

// Item of a list.
type Item struct {
	Key   string
	Value any
}

// ByNumber compares ids: the shorter one is the smaller one, since none begins with 0.
func ByNumber(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) }

// NewList makes a list of items, which are sorted by compare.
func NewList(items []Item, sums any, compare func(a, b string) int, before *Shown) (*Shown, error) {
	slices.SortFunc(items, func(a, b Item) int { return compare(a.Key, b.Key) })
	s := &Shown{compare: compare, Keys: make([]string, len(items)), Items: make([][]byte, len(items))}
	for i, it := range items {
		text, err := json.Marshal(it.Value)
		if err != nil {
			return nil, fmt.Errorf("writing %s: %w", it.Key, err)
		}
		s.Keys[i], s.Items[i] = it.Key, text
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

// NewObject makes one object.
func NewObject(value any, before *Shown) (*Shown, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("writing an object: %w", err)
	}
	s := &Shown{Single: true, Keys: []string{""}, Items: [][]byte{text}, compare: func(string, string) int { return 0 }}
	s.follow(before)
	return s, nil
}

// follow shares what did not change, and makes the id.
func (s *Shown) follow(before *Shown) {
	if before != nil {
		if slices.Equal(s.Keys, before.Keys) {
			s.Keys = before.Keys
		}
		s.merge(before, func(i, old int) {
			if i >= 0 && old >= 0 && bytes.Equal(s.Items[i], before.Items[old]) {
				s.Items[i] = before.Items[old]
			}
		})
	}
	h := sha256.New()
	for i, text := range s.Items {
		_, _ = h.Write([]byte(s.Keys[i])) // a hash takes all
		_, _ = h.Write([]byte{0})
		_, _ = h.Write(text)
	}
	_, _ = h.Write(s.sums)
	s.ID = hex.EncodeToString(h.Sum(nil)[:12])
	if before == nil || before.ID == s.ID {
		return
	}
	var change bytes.Buffer
	if s.WriteChange(&change, before, nil) == nil { // a buffer takes all
		s.before, s.change = before.ID, change.Bytes()
	}
}

// merge calls f with the places of each key in both; -1: it is not there.
func (s *Shown) merge(old *Shown, f func(i, old int)) {
	for i, k := 0, 0; i < len(s.Keys) || k < len(old.Keys); {
		order := 0
		switch {
		case i == len(s.Keys):
			order = 1
		case k == len(old.Keys):
			order = -1
		case s.Keys[i] != old.Keys[k]:
			order = s.compare(s.Keys[i], old.Keys[k])
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
