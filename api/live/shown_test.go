package live

import (
	"bytes"
	"testing"

	apiv1 "tkestack.io/tapp/api/v1"
)

// TestPages: a list comes in pages, in the order of numbers, and the last page says so.
func TestPages(t *testing.T) {
	var items []Item
	for _, id := range []string{"10", "2", "1", "11"} {
		items = append(items, Item{id, apiv1.Instance{ID: id}})
	}
	s, err := NewList(items, nil, ByNumber, nil)
	if err != nil {
		t.Fatal(err)
	}
	var all, change bytes.Buffer
	if err := s.WriteAll(&all, nil); err != nil {
		t.Fatal(err)
	}
	if got := all.String(); got != `{"items":[{"id":"1","template":"","state":""},{"id":"2","template":"","state":""},{"id":"10","template":"","state":""},{"id":"11","template":"","state":""}],"total":4}` {
		t.Error(got)
	}
	next, err := NewList([]Item{{"2", apiv1.Instance{ID: "2", State: "Running"}}, {"1", apiv1.Instance{ID: "1"}}, {"12", apiv1.Instance{ID: "12"}}, {"11", apiv1.Instance{ID: "11"}}}, map[string]int{"desired": 4}, ByNumber, s)
	if err != nil {
		t.Fatal(err)
	}
	if err := next.WriteChange(&change, s, nil); err != nil {
		t.Fatal(err)
	}
	if got := change.String(); got != `{"items":[{"id":"2","template":"","state":"Running"},{"id":"12","template":"","state":""}],"total":4,"removed":["10"],"desired":4}` {
		t.Error(got)
	}
}
