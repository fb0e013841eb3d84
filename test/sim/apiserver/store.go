package apiserver

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Change is one step of one object. Changes are never changed.
type Change struct {
	Version  int64
	Resource string
	// Before and After the step; nil: the object came, or went.
	Before, After Object
	// Actor is who did it.
	Actor

	wire map[string][]byte // what watches send, by what they ask for
}

// Object that the change is about, as it was last.
func (c *Change) Object() Object {
	if c.After != nil {
		return c.After
	}
	return c.Before
}

// Key of the object.
func (c *Change) Key() string { return Key(c.Object()) }

// Table holds the objects of one resource by key, and all that ever happened to them.
type Table struct {
	Objects map[string]Object
	History []*Change
}

// Keys in order.
func (t *Table) Keys() []string { return SortedKeys(t.Objects) }

// At is the table as it was at a version.
func (t *Table) At(version int64) map[string]Object {
	out := map[string]Object{}
	for _, c := range t.History {
		if c.Version > version {
			break
		}
		if c.After == nil {
			delete(out, Key(c.Before))
		} else {
			out[Key(c.After)] = c.After
		}
	}
	return out
}

// Since are the changes after a version.
func (t *Table) Since(version int64) []*Change {
	i, _ := slices.BinarySearchFunc(t.History, version+1, func(c *Change, v int64) int { return int(c.Version - v) })
	return t.History[i:]
}

// Store is what etcd is to an API server.
type Store struct {
	Tables map[string]*Table
	// Version of the last change.
	Version int64
	// Name begins the UIDs, so that those of several servers differ.
	Name string
	// Watchers are told of every change.
	Watchers []func(*Change)

	kinds map[string]Kind
	uids  int
}

func newStore(kinds map[string]Kind) *Store {
	s := &Store{kinds: kinds, Tables: map[string]*Table{}, Version: 100}
	for resource := range kinds {
		s.Tables[resource] = &Table{Objects: map[string]Object{}}
	}
	return s
}

// Get an object; nil: there is none.
func (s *Store) Get(resource, key string) Object {
	if o, ok := s.Tables[resource].Objects[key]; ok {
		return o
	}
	return nil
}

// commit makes a step; after is nil for a removal. It takes after over.
func (s *Store) commit(resource string, before, after Object, who Actor) Object {
	s.Version++
	version := strconv.FormatInt(s.Version, 10)
	t := s.Tables[resource]
	c := &Change{Version: s.Version, Resource: resource, Before: before, After: after, Actor: who}
	if after == nil {
		last := Clone(before)
		last.SetResourceVersion(version)
		c.Before = last
		delete(t.Objects, Key(before))
	} else {
		after.SetResourceVersion(version)
		after.GetObjectKind().SetGroupVersionKind(s.kinds[resource].GVK)
		t.Objects[Key(after)] = after
	}
	t.History = append(t.History, c)
	for _, tell := range s.Watchers {
		tell(c)
	}
	return c.Object()
}

// NewUID is one that nothing has.
func (s *Store) NewUID() types.UID {
	s.uids++
	return types.UID(s.Name + "u" + strconv.Itoa(s.uids))
}

// Actor is who writes.
type Actor struct {
	By string
	At time.Time
	// Cause is what the caller wants to find again in the changes that come of it.
	Cause any
}

// All objects of a resource, by key.
func All[T Object](s *Store, resource string) []T {
	t := s.Tables[resource]
	out := make([]T, 0, len(t.Objects))
	for _, key := range t.Keys() {
		out = append(out, t.Objects[key].(T))
	}
	return out
}

// Find an object.
func Find[T Object](s *Store, resource, key string) (T, bool) {
	o, ok := s.Tables[resource].Objects[key].(T)
	return o, ok
}

// nameIn a key.
func nameIn(key string) string { return key[strings.LastIndexByte(key, '/')+1:] }

// SortedKeys of a map.
func SortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// Restore the store as a backup from a version has it. Who watched has to be cut off.
func (s *Store) Restore(version int64) {
	for _, t := range s.Tables {
		t.Objects = t.At(version)
		i, _ := slices.BinarySearchFunc(t.History, version+1, func(c *Change, v int64) int { return int(c.Version - v) })
		t.History = slices.Clip(t.History[:i])
	}
	s.Version = version
}
