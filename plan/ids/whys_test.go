package ids

import "testing"

func TestWhys(t *testing.T) {
	for _, c := range []struct{ whys, want string }{
		{"", ""},
		{"a", "; instance 0: a"},
		{"aa-ab", "; instances 0-1,3: a; instance 4: b"}, // 2 has nothing to tell
		{"abc", "; instance 0: a; instance 1: b; and 1 reasons more"},
	} {
		var w Whys
		for id, why := range c.whys {
			text := string(why)
			if why == '-' {
				text = ""
			}
			w.Add(text, id)
		}
		if got := w.Tail(2); got != c.want {
			t.Errorf("%s: %q", c.whys, got)
		}
	}
}
