// Package page is the web page of TApp: what needs a human, then everything else. It is
// plain HTML, style sheets and scripts, embedded and served as they are. The page reads
// the API with the rights of whoever looks at it; the files themselves tell nothing.
package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed static
var static embed.FS

// policy lets the page load and ask nothing but this server, be framed by nobody, and
// make no element from text: what a cluster says cannot become script.
const policy = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// Options are what differs between the servers of the page: what /config.json says.
type Options struct {
	// Actions says that the server has the routes /actions/plan and /actions/run: only
	// `kubectl tapp dashboard` does.
	Actions bool `json:"actions"`
	// Namespace is shown first; "": all that the user may see.
	Namespace string `json:"namespace,omitempty"`
}

// file is one of the page's.
type file struct {
	kind string // MIME type
	tag  string
	body []byte
}

// New returns the handler of /, /app/... and /config.json. Whatever else is asked for
// is not found.
func New(o Options) (http.Handler, error) {
	files, err := read()
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("writing the page's configuration: %w", err)
	}
	files["/config.json"] = newFile("application/json", body)
	return handler(files), nil
}

func read() (map[string]file, error) {
	out := map[string]file{}
	entries, err := fs.ReadDir(static, "static")
	if err != nil {
		return nil, fmt.Errorf("reading the page: %w", err)
	}
	for _, e := range entries {
		body, err := static.ReadFile("static/" + e.Name())
		if err != nil {
			return nil, fmt.Errorf("reading the page: %w", err)
		}
		kind := kindOf(e.Name())
		if kind == "" {
			return nil, errors.New("reading the page: what is " + e.Name() + "?")
		}
		at := "/app/" + e.Name()
		if e.Name() == "index.html" {
			at = "/"
		}
		out[at] = newFile(kind, body)
	}
	return out, nil
}

// kindOf a file by its name: the machine's own table of MIME types may say otherwise.
func kindOf(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".html":
		return "text/html; charset=utf-8"
	case ".svg":
		return mime.FormatMediaType("image/svg+xml", nil)
	}
	return ""
}

func newFile(kind string, body []byte) file {
	sum := sha256.Sum256(body)
	return file{kind: kind, tag: `"` + hex.EncodeToString(sum[:12]) + `"`, body: body}
}

type handler map[string]file

func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	f, ok := h[r.URL.Path]
	switch {
	case !ok:
		http.NotFound(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		header.Set("Allow", strings.Join([]string{http.MethodGet, http.MethodHead}, ", "))
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	default:
		header.Set("Content-Type", f.kind)
		header.Set("ETag", f.tag)
		// Kept, and asked about each time: the page always fits the server.
		header.Set("Cache-Control", "no-cache")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.body))
	}
}
