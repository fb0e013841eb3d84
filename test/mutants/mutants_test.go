package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestMutantsApply: the text of every mutant is in the product exactly once, what
// it makes is Go, and no two have one name.
func TestMutantsApply(t *testing.T) {
	seen := map[string]bool{}
	all := slices.Clone(rooms)
	for _, s := range simulations {
		all = append(all, room{s.room, []mutant{s.mutant}})
	}
	for _, r := range all {
		for _, m := range r.mutants {
			source, err := os.ReadFile(filepath.Join("..", "..", r.path, m.file))
			if err != nil {
				t.Error(err)
				continue
			}
			if _, err := m.mutate(string(source)); err != nil {
				t.Error(err)
			}
			if seen[m.name] {
				t.Errorf("two mutants %s", m.name)
			}
			seen[m.name] = true
		}
	}
	for i := range oracles {
		if _, m := oracles[i].find(); m.name == "" || oracles[i].seeds == 0 || oracles[i].by == 0 {
			t.Errorf("the oracle %s has no mutant %s, or no seeds", oracles[i].oracle, oracles[i].mutant)
		}
	}
	if len(seen) < 40 {
		t.Errorf("%d mutants", len(seen))
	}
}

// TestMutate: text that has gone, or is there twice, is told of.
func TestMutate(t *testing.T) {
	for _, x := range []struct {
		source, want string
	}{
		{"package p\n\nvar x = 1 < 2\n", ""},
		{"package p\n", "mutant m does not apply: its text occurs 0 times in x.go; bring it up to date with the code"},
		{"package p\n\nvar x, y = 1 < 2, 1 < 2\n", "mutant m does not apply: its text occurs 2 times in x.go; bring it up to date with the code"},
	} {
		_, err := mutant{name: "m", file: "x.go", old: "1 < 2", new: "1 > 2"}.mutate(x.source)
		if got := errorText(err); got != x.want {
			t.Errorf("%q: %s", x.source, got)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
