package sim

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// change is one step of one object. Changes are never changed.
type change struct {
	version  int64
	resource string
	// before and after the step; nil: the object came, or went.
	before, after object
	at            time.Time
	// by is who did it; request is the controller's, if it was one.
	by      string
	request *request

	wire map[string][]byte // what watches send, by what they ask for
}

// object that the change is about, as it was last.
func (c *change) object() object {
	if c.after != nil {
		return c.after
	}
	return c.before
}

// table holds the objects of one resource, and all that ever happened to them.
type table struct {
	objects map[string]object // by name: there is one namespace
	history []*change
}

// names in order.
func (t *table) names() []string {
	out := make([]string, 0, len(t.objects))
	for name := range t.objects {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// at is the table as it was at a version.
func (t *table) at(version int64) map[string]object {
	out := map[string]object{}
	for _, c := range t.history {
		if c.version > version {
			break
		}
		if c.after == nil {
			delete(out, c.before.GetName())
		} else {
			out[c.after.GetName()] = c.after
		}
	}
	return out
}

// since are the changes after a version.
func (t *table) since(version int64) []*change {
	i, _ := slices.BinarySearchFunc(t.history, version+1, func(c *change, v int64) int { return int(c.version - v) })
	return t.history[i:]
}

// store is what etcd is to an API server.
type store struct {
	kinds   map[string]kind
	tables  map[string]*table
	version int64
	uids    int
	// watchers are told of every change.
	watchers []func(*change)
}

func newStore() *store {
	s := &store{kinds: kinds(), tables: map[string]*table{}, version: 100}
	for resource := range s.kinds {
		s.tables[resource] = &table{objects: map[string]object{}}
	}
	return s
}

func (s *store) get(resource, name string) object {
	if o, ok := s.tables[resource].objects[name]; ok {
		return o
	}
	return nil
}

// commit makes a step; after is nil for a removal. It takes after over.
func (s *store) commit(resource string, before, after object, who actor) object {
	s.version++
	version := strconv.FormatInt(s.version, 10)
	t := s.tables[resource]
	c := &change{version: s.version, resource: resource, before: before, after: after, at: who.at, by: who.name, request: who.request}
	if after == nil {
		last := clone(before)
		last.SetResourceVersion(version)
		c.before = last
		delete(t.objects, before.GetName())
	} else {
		after.SetResourceVersion(version)
		after.GetObjectKind().SetGroupVersionKind(s.kinds[resource].gvk)
		t.objects[after.GetName()] = after
	}
	t.history = append(t.history, c)
	for _, tell := range s.watchers {
		tell(c)
	}
	return c.object()
}

func (s *store) newUID() types.UID {
	s.uids++
	return types.UID("u" + strconv.Itoa(s.uids))
}

// actor is who writes.
type actor struct {
	name    string
	at      time.Time
	request *request
}

func all[T object](s *store, resource string) []T {
	t := s.tables[resource]
	out := make([]T, 0, len(t.objects))
	for _, name := range t.names() {
		out = append(out, t.objects[name].(T))
	}
	return out
}

func find[T object](s *store, resource, name string) (T, bool) {
	o, ok := s.tables[resource].objects[name].(T)
	return o, ok
}

// stem is a name without the number at its end, and the number.
func stem(name string) (string, string) {
	i := strings.LastIndexByte(name, '-')
	if i < 0 {
		return name, ""
	}
	return name[:i], name[i+1:]
}
