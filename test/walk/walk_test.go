package walk

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const page = "# Page\n\n```sh\n$ not run\n```\n\n## First\n\n```console\nlost\n$ echo one; \\\necho two\none\ntwo\n$ true\n```\n\n## Second\n\n```console\n$ echo web-0 node1 10.0.0.7 5s\nweb-0 node2 10.0.0.8   1m3s\n$ seq 4\n1\n...\n4\n```\n\n1. list\n\n   ```console\n   $ printf 'a\\n  b\\n'\n   a\n     b\n   ```\n"

func TestRead(t *testing.T) {
	want := []Step{
		{Section: "First", Command: "echo one; \\\necho two", Output: "one\ntwo\n"},
		{Section: "First", Command: "true"},
		{Section: "Second", Command: "echo web-0 node1 10.0.0.7 5s", Output: "web-0 node2 10.0.0.8   1m3s\n"},
		{Section: "Second", Command: "seq 4", Output: "1\n...\n4\n"},
		{Section: "Second", Command: `printf 'a\n  b\n'`, Output: "a\n  b\n"},
	}
	got := Read(page)
	if len(got) != len(want) {
		t.Fatalf("%d steps, want %d: %+v", len(got), len(want), got)
	}
	for i, s := range got {
		s.first, s.end, s.indent = 0, 0, ""
		if s != want[i] {
			t.Errorf("step %d is %+v, want %+v", i, s, want[i])
		}
	}
	outputs := make([]string, 0, len(got))
	for _, s := range got {
		outputs = append(outputs, s.Output)
	}
	if again := Write(page, got, outputs); again != page {
		t.Errorf("written with its own outputs it is\n%s", again)
	}
	if other := Write(page, got[1:2], []string{"new\n"}); !strings.Contains(other, "$ true\nnew\n```\n") || !strings.Contains(other, "one\ntwo\n") {
		t.Errorf("with another output it is\n%s", other)
	}
}

const one, two = "9af7725e-ad03-48ad-bc4a-4c5442904e33", "6a6be29e-3e07-4b0d-94b0-089ca30e37e7"

func TestDiff(t *testing.T) {
	for _, same := range []struct{ want, got string }{
		{"", ""},
		{"", "\n"},
		{"NAME  AGE\nweb   5s\n", "NAME AGE\nweb 2m10s"},
		{"ready at 2026-01-01T00:00:00Z on kwok-3, hash 0123456789abcdef", "ready at 2027-02-02T11:11:11Z on node1, hash fedcba9876543210"},
		{one + " " + two + " " + one, two + " " + one + " " + two},
		{"a\n...", "a"},
		{"...\nz", "a\nb\nz\n"},
		{"a\n...\nm\n...\nz", "a\nm\nm\nz"},
	} {
		if d := newComparison().diff(same.want, same.got); d != "" {
			t.Errorf("%q and %q should be the same:\n%s", same.want, same.got, d)
		}
	}
	for _, other := range []struct{ want, got string }{
		{"", "a"},
		{"a", ""},
		{"web-0", "web-1"},
		{"a\n...\nz", "a\nb"},
		{"...\nz\nz", "z"},
		{one + " " + one, one + " " + two},
		{one + " " + two, one + " " + one},
	} {
		if newComparison().diff(other.want, other.got) == "" {
			t.Errorf("%q and %q should differ", other.want, other.got)
		}
	}
	want := "diff want got\n--- want\n+++ got\n@@ -1,2 +1,2 @@\n a <age>\n-b\n+c\n"
	if d := newComparison().diff("a 1s\nb", "a 2s\nc"); d != want {
		t.Errorf("the difference is\n%s\nwant\n%s", d, want)
	}
}

func TestGo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(page)
	w := Walk{Page: file, Dir: t.TempDir(), Env: os.Environ(), Patience: time.Minute, Log: t.Logf}
	if err := w.Go(t.Context()); err != nil {
		t.Error(err)
	}
	stale := strings.Replace(page, "one\ntwo\n", "two\n", 1)
	write(stale)
	if err := w.Go(t.Context()); err == nil || !strings.Contains(err.Error(), "page.md:12: $ echo one") || !strings.Contains(err.Error(), "+one") {
		t.Errorf("a stale page: %v", err)
	}
	w.Section = "Second"
	if err := w.Go(t.Context()); err != nil {
		t.Errorf("the other section of a stale page: %v", err)
	}
	w.Section, w.Record = "First", true
	if err := w.Go(t.Context()); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != page {
		t.Errorf("recorded: %v\n%s", err, got)
	}
	w.Section = "Third"
	if err := w.Go(t.Context()); err == nil || err.Error() != file+` has no commands under "Third"` {
		t.Errorf("no such section: %v", err)
	}
	write("```console\n$ exec tail -f /dev/null\n```\n")
	w.Section, w.Patience = "", 50*time.Millisecond
	if err := w.Go(t.Context()); err == nil || !strings.Contains(err.Error(), "it has not ended after 50ms") {
		t.Errorf("a command that does not end: %v", err)
	}
}
