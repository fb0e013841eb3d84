package cache

import "testing"

func TestNewer(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"9", "10", false}, {"10", "9", true}, {"10", "10", false}, {"", "", false}, {"", "1", false}, {"1", "", true},
		{"99999999999999999999", "100000000000000000000", false}, {"abc", "1", false},
	} {
		if got := Newer(c.a, c.b); got != c.want {
			t.Errorf("Newer(%q, %q) = %v", c.a, c.b, got)
		}
	}
}
