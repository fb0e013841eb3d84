package drive

import (
	"strings"
	"testing"
)

// TestDifferences: what is left to chance is found, and a run that the system disturbed is
// borne.
func TestDifferences(t *testing.T) {
	for name, c := range map[string]struct {
		// digest of a run of a seed, by how often that has been run before.
		digest func(seed int64, before int) uint64
		want   []string
	}{
		"the same":          {func(seed int64, _ int) uint64 { return uint64(seed) }, nil},
		"one was disturbed": {func(seed int64, before int) uint64 { return map[bool]uint64{true: 1}[seed == 3 && before == 1] }, nil},
		"two were disturbed": {func(seed int64, before int) uint64 {
			return map[bool]uint64{true: uint64(before)}[seed == 3 && before < 3]
		}, nil},
		"never twice the same": {func(_ int64, before int) uint64 { return uint64(before) }, []string{"seed 12: 6 of 7 runs", "seed 1: 6 of 7 runs"}},
		"one way or the other": {func(seed int64, before int) uint64 { return map[bool]uint64{true: uint64(before % 2)}[seed == 5] }, []string{"seed 5: 3 of 7 runs"}},
	} {
		t.Run(name, func(t *testing.T) {
			before := map[int64]int{}
			got := differences(func(seed int64) Trail {
				digest := c.digest(seed, before[seed])
				before[seed]++
				return Trail{Digest: digest, Trace: []string{"begins", strings.Repeat("x", int(digest))}}
			})
			for _, want := range c.want {
				found := false
				for _, text := range got {
					found = found || strings.HasPrefix(text, want) && strings.Contains(text, "begins")
				}
				if !found {
					t.Errorf("%q is not among %q", want, got)
				}
			}
			if (len(got) == 0) != (len(c.want) == 0) {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}
