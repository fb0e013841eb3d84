package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPlots(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "plots.json")
	const charts = `[
		{"Name": "bars", "Title": "Time", "Y": "s", "Groups": ["create", "update"],
		 "Series": [{"Name": "limit", "Values": [1, 2]}, {"Name": "ours", "Values": [1.5, 0]}]},
		{"Name": "lines", "Title": "Scale", "X": "pods", "Y": "ms", "Log10X": true,
		 "Series": [{"Name": "ours", "Colour": 3, "Points": [{"X": 100, "Y": 2}, {"X": 10000, "Y": 3}]}]}
	]`
	if err := os.WriteFile(file, []byte(charts), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(file, filepath.Join(dir, "new")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"bars":  {"Time", "create", "update", "limit", "ours"},
		"lines": {"Scale", "pods", "ours", "10000", "#E69F00"},
	} {
		svg, err := os.ReadFile(filepath.Join(dir, "new", name+".svg"))
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range want {
			if !strings.Contains(string(svg), text) {
				t.Errorf("%s: no %q", name, text)
			}
		}
		d := xml.NewDecoder(strings.NewReader(string(svg)))
		for err = nil; err == nil; _, err = d.Token() {
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("%s is no XML: %v", name, err)
		}
	}
	if err := run(file+".missing", dir); err == nil {
		t.Error("a missing file must be an error")
	}
}
