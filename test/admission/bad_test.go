//go:build cluster

package admission

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write into the manifests what kubectl says now")

// badManifests begin with what kubectl says, as a comment. Where a file has several
// documents the last one is bad, as an update of those before.
const badManifests = "../../webhook/%s/testdata/bad/*.yaml"

// TestBadManifests: what users see, word for word.
func TestBadManifests(t *testing.T) {
	for kind, least := range map[string]int{"tapp": 60, "appset": 40, "advdeployment": 20} {
		t.Run(kind, func(t *testing.T) { testBadManifests(t, fmt.Sprintf(badManifests, kind), least) })
	}
}

// testBadManifests of one kind, of which there are some.
func testBadManifests(t *testing.T, pattern string, least int) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) < least {
		t.Fatalf("%d manifests, error %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			t.Parallel()
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want, manifest := split(string(content))
			documents := strings.Split(manifest, "---\n")
			last := len(documents) - 1
			r := newRig(t, nil)
			for _, good := range documents[:last] {
				r.KubectlWith(good, "apply", "--filename", "-")
			}
			out, err := r.TryKubectlWith(documents[last], "apply", "--filename", "-")
			if err == nil {
				t.Fatalf("it is admitted: %s", out)
			}
			got := tidy(strings.ReplaceAll(out, r.NS, "NAMESPACE"))
			if *update {
				if err := os.WriteFile(file, []byte(comment(got)+manifest), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if !isAlike(got, want) {
				t.Errorf("kubectl says:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// split a manifest into the comment at its beginning and the rest.
func split(content string) (comment, rest string) {
	var lines []string
	for strings.HasPrefix(content, "#") {
		line, after, _ := strings.Cut(content, "\n")
		lines, content = append(lines, strings.TrimPrefix(strings.TrimPrefix(line, "#"), " ")), after
	}
	return strings.Join(lines, "\n"), content
}

func comment(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text + "\n") {
		b.WriteString(strings.TrimRight("# "+line, " \n") + "\n")
	}
	return b.String()
}

// versions are words of the API server's own that differ between versions of Kubernetes.
var versions = []struct {
	older  *regexp.Regexp
	common string
}{
	{regexp.MustCompile(`Invalid value: "object": `), "Invalid value: "},
	{regexp.MustCompile(`map\[string\]interface \{\}(\{.*\})`), "$1"},
	{regexp.MustCompile(`Invalid value: "null": `), "Invalid value: null: "},
	{regexp.MustCompile(`"number": (\S+) in body must be of type integer: "number"`), `"float64": $1 in body must be of type int32: "float64"`},
	{regexp.MustCompile(`(?m)^\* <nil>: Invalid value: "": Checked value must be of type .*\n`), ""},
}

// isAlike says whether both are the same but for the API server's version. An older one names
// the type of a text in the place of the text.
func isAlike(got, want string) bool {
	for _, v := range versions {
		got, want = v.older.ReplaceAllString(got, v.common), v.older.ReplaceAllString(want, v.common)
	}
	pattern := strings.ReplaceAll(regexp.QuoteMeta(got), `Invalid value: "string": `, `Invalid value: "[^"]*": `)
	return regexp.MustCompile("^" + pattern + "$").MatchString(want)
}

// tidy leaves out spaces at the ends of lines.
func tidy(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}
