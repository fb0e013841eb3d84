package cache

import "testing"

func TestInventoryReached(t *testing.T) {
	live := &inventory{version: "200", objects: map[string]string{"ns/a-0": "150", "ns/a-1": "160"}}
	for name, c := range map[string]struct {
		pods     []any
		bookmark string
		want     bool
	}{
		"current":                    {[]any{somePod("a-0", "u", "150"), somePod("a-1", "u", "160")}, "", true},
		"one is newer":               {[]any{somePod("a-0", "u", "150"), somePod("a-1", "u", "170")}, "", true},
		"one is older":               {[]any{somePod("a-0", "u", "150"), somePod("a-1", "u", "159")}, "", false},
		"one is missing":             {[]any{somePod("a-0", "u", "150")}, "", false},
		"one should be gone":         {[]any{somePod("a-0", "u", "150"), somePod("a-1", "u", "160"), somePod("a-2", "u", "140")}, "", false},
		"one came since":             {[]any{somePod("a-1", "u", "160"), somePod("a-2", "u", "210"), somePod("a-0", "u", "150")}, "", true},
		"the store is past the list": {nil, "201", true},
	} {
		t.Run(name, func(t *testing.T) {
			store := newStores()["pods"]
			for _, p := range c.pods {
				_ = store.Add(p)
			}
			if c.bookmark != "" {
				store.Bookmark(c.bookmark)
			}
			if got := live.reached(store); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
