package message

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestBound(t *testing.T) {
	for name, c := range map[string]struct {
		got, want string
	}{
		"what fits stays":              {Bound(strings.Repeat("a", 1024)), strings.Repeat("a", 1024)},
		"what does not is cut":         {Bound(strings.Repeat("a", 1025)), strings.Repeat("a", 1021) + "..."},
		"no half of a character stays": {Bound(strings.Repeat("é", 513)), strings.Repeat("é", 510) + "..."},
		"a quote fits":                 {Quote(strings.Repeat("a", 512)), strings.Repeat("a", 512)},
		"a quote is cut":               {Quote(strings.Repeat("a", 40_000)), strings.Repeat("a", 509) + "..."},
		"parts that fit":               {Join([]string{"a", "b", "c"}, "; "), "a; b; c"},
		"no parts":                     {Join(nil, "; "), ""},
		"one part that is too long":    {Join([]string{strings.Repeat("a", 2000)}, "; "), strings.Repeat("a", 1021) + "..."},
		"parts that do not fit are counted": {Join([]string{strings.Repeat("a", 500), strings.Repeat("b", 480), strings.Repeat("c", 100), "d"}, "; "),
			strings.Repeat("a", 500) + "; " + strings.Repeat("b", 480) + "; and 2 more"},
	} {
		if c.got != c.want || !utf8.ValidString(c.got) || len(c.got) > most {
			t.Errorf("%s: %q, want %q", name, c.got, c.want)
		}
	}
}
