// Package archive reads a chart's archive without rendering it, and says what of Helm the
// chart uses that is not done here. It runs nothing of a chart.
package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Bounds of what is read of the archives of one object: of all files together, of the templates
// that are searched, of one file, of archives in archives, and of what is said of an archive.
const (
	maxUnpacked = 24 << 20
	maxSearched = 2 << 20
	maxFile     = 1 << 20
	maxDepth    = 4
	maxSaid     = 8
)

var (
	comment = regexp.MustCompile(`(?s)\{\{-?\s*/\*.*?\*/\s*-?\}\}`)
	// A call within one action: its name after a blank, a parenthesis or a pipe, and an argument.
	call = regexp.MustCompile(`\{\{[^{}]*?[\s(|-](lookup|getHostByName)\s+["(.$` + "`" + `][^{}]*\}\}`)
	hook = regexp.MustCompile(`(?m)^[^#\n]*["']?helm\.sh/hook["']?\s*:\s*["']?([a-z, -]*)`)
)

// because is why a function finds nothing.
var because = map[string]string{
	"lookup":        "charts are rendered without access to the cluster",
	"getHostByName": "charts are rendered without network",
}

// Reader reads the archives of one object. Its bounds are for all of them together, so that
// many take no longer than one.
type Reader struct {
	left int64 // bytes that may be read
	text int   // bytes of templates that may be searched
}

// NewReader is for one object.
func NewReader() *Reader { return &Reader{maxUnpacked, maxSearched} }

// Undone says in sentences, each with its file, what a chart uses of Helm that is not done
// here. Rendering says the same of what is really called, and what is wrong with an archive
// that cannot be read.
func (r *Reader) Undone(chart []byte) []string {
	s := &scan{Reader: r}
	s.archive(chart, "", 0)
	slices.Sort(s.said)
	return s.said
}

// scan of an archive and of those in it.
type scan struct {
	*Reader
	said []string
}

func (s *scan) archive(raw []byte, in string, depth int) {
	zip, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil || depth > maxDepth {
		return
	}
	files := tar.NewReader(io.LimitReader(zip, s.left))
	for len(s.said) < maxSaid {
		header, err := files.Next()
		if err != nil {
			return
		}
		if s.left -= header.Size; s.left < 0 {
			return
		}
		name := path.Join(in, path.Clean("/"+header.Name))
		if header.Typeflag != tar.TypeReg || header.Size > maxFile || !isTemplate(name) && !isArchive(name) {
			continue
		}
		text, err := io.ReadAll(files)
		if err != nil {
			return
		}
		if isArchive(name) {
			s.archive(text, path.Dir(name), depth+1)
		} else {
			s.template(strings.TrimPrefix(name, "/"), string(text))
		}
	}
}

func isTemplate(name string) bool { return strings.Contains(name, "/templates/") }

// isSuspect says whether a template is worth a search, which takes a hundred times as long.
func isSuspect(text string) bool {
	return strings.Contains(text, "lookup") || strings.Contains(text, "getHostByName") || strings.Contains(text, "helm.sh/hook")
}

func isArchive(name string) bool {
	return strings.HasSuffix(path.Dir(name), "/charts") && strings.HasSuffix(name, ".tgz")
}

func (s *scan) template(name, text string) {
	if !isSuspect(text) {
		return
	}
	if s.text -= len(text); s.text < 0 {
		return
	}
	text = comment.ReplaceAllString(text, "")
	var called []string
	for _, found := range call.FindAllStringSubmatch(text, -1) {
		called = append(called, found[1])
	}
	slices.Sort(called)
	for _, function := range slices.Compact(called) {
		s.say("%s calls %s, which finds nothing here: %s", name, function, because[function])
	}
	for _, found := range hook.FindAllStringSubmatch(text, -1) {
		for event := range strings.SplitSeq(found[1], ",") {
			if event = strings.TrimSpace(event); event == "test" || event == "test-success" {
				s.say("%s has a test, which is not run here: `helm test` runs it", name)
				return
			}
		}
	}
}

func (s *scan) say(format string, args ...any) {
	if len(s.said) < maxSaid {
		s.said = append(s.said, fmt.Sprintf(format, args...))
	}
}
