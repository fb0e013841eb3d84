package main

import (
	"bufio"
	"bytes"
	"os"
	"slices"
	"testing"
)

func TestValueRows(t *testing.T) {
	rows, err := valueRows([]byte(`# Of the whole file.

# How many
# pods | run.
replicas: 2
image:
  # Where it is.
  repository: ""
  tag: "x"
free: {}
# Of a map that has no comments.
limits:
  memory: 1Gi
`))
	want := []row{
		{"replicas", "`2`", "How many pods \\| run."},
		{"image.repository", "`\"\"`", "Where it is."},
		{"image.tag", "`\"x\"`", "see above"},
		{"free", "`{}`", ""},
		{"limits", "`{\"memory\":\"1Gi\"}`", "Of a map that has no comments."},
	}
	if err != nil || !slices.Equal(rows, want) {
		t.Errorf("%v\n%q\nwant\n%q", err, rows, want)
	}
	for _, bad := range []string{"[1]", "a: [", ""} {
		if rows, err := valueRows([]byte(bad)); err == nil {
			t.Errorf("%q: %v", bad, rows)
		}
	}
}

// TestValuesPage: chart/README.md is as `make generate` writes it.
func TestValuesPage(t *testing.T) {
	t.Chdir("../..")
	have, err := os.ReadFile("chart/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	out := bufio.NewWriter(&page)
	if err := valuesPage(out); err != nil {
		t.Fatal(err)
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	if page.String() != string(have) {
		t.Error("chart/README.md is out of date: make generate")
	}
}
