package events

import (
	"slices"
	"testing"
)

// TestNews: each is told once, as long as it is not gone in between.
func TestNews(t *testing.T) {
	var n News[string]
	for i, c := range []struct{ all, want []string }{
		{[]string{"a"}, []string{"a"}},
		{[]string{"a"}, nil},
		{[]string{"b", "a"}, []string{"b"}},
		{nil, nil},
		{[]string{"a"}, []string{"a"}},
	} {
		if got := n.Of(c.all); !slices.Equal(got, c.want) {
			t.Errorf("%d: %q, want %q", i, got, c.want)
		}
	}
}
