package api

import (
	"bytes"
	"testing"
)

// TestPages: a list comes in pages, in the order of numbers, and the last page says so.
func TestPages(t *testing.T) {
	var items []item
	for _, id := range []string{"10", "2", "1", "11"} {
		items = append(items, item{id, Instance{ID: id}})
	}
	s, err := newList(items, nil, byNumber, nil)
	if err != nil {
		t.Fatal(err)
	}
	var all, change bytes.Buffer
	if err := s.writeAll(&all, nil); err != nil {
		t.Fatal(err)
	}
	if got := all.String(); got != `{"items":[{"id":"1","template":"","state":""},{"id":"2","template":"","state":""},{"id":"10","template":"","state":""},{"id":"11","template":"","state":""}],"total":4}` {
		t.Error(got)
	}
	next, err := newList([]item{{"2", Instance{ID: "2", State: "Running"}}, {"1", Instance{ID: "1"}}, {"12", Instance{ID: "12"}}, {"11", Instance{ID: "11"}}}, map[string]int{"desired": 4}, byNumber, s)
	if err != nil {
		t.Fatal(err)
	}
	if err := next.writeChange(&change, s, nil); err != nil {
		t.Fatal(err)
	}
	if got := change.String(); got != `{"items":[{"id":"2","template":"","state":"Running"},{"id":"12","template":"","state":""}],"total":4,"removed":["10"],"desired":4}` {
		t.Error(got)
	}
}
