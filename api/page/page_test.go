package page

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"
)

func serve(t *testing.T, o Options, method, target string, header http.Header) *http.Response {
	t.Helper()
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), method, target, nil)
	for k, v := range header {
		r.Header[k] = v
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	all, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return string(all)
}

func TestRoutes(t *testing.T) {
	for _, c := range []struct {
		method, target string
		code           int
		kind           string
	}{
		{http.MethodGet, "/", 200, "text/html; charset=utf-8"},
		{http.MethodHead, "/", 200, "text/html; charset=utf-8"},
		{http.MethodGet, "/app/main.js", 200, "text/javascript; charset=utf-8"},
		{http.MethodGet, "/app/page.css", 200, "text/css; charset=utf-8"},
		{http.MethodGet, "/app/icon.svg", 200, "image/svg+xml"},
		{http.MethodGet, "/config.json", 200, "application/json"},
		{http.MethodPost, "/", 405, "text/plain; charset=utf-8"},
		{http.MethodGet, "/app/", 404, "text/plain; charset=utf-8"},
		{http.MethodGet, "/app/../page.go", 404, "text/plain; charset=utf-8"},
		{http.MethodGet, "/app/index.html", 404, "text/plain; charset=utf-8"},
		{http.MethodGet, "/static/main.js", 404, "text/plain; charset=utf-8"},
	} {
		r := serve(t, Options{}, c.method, c.target, nil)
		if r.StatusCode != c.code || r.Header.Get("Content-Type") != c.kind {
			t.Errorf("%s %s: %d %s, want %d %s", c.method, c.target, r.StatusCode, r.Header.Get("Content-Type"), c.code, c.kind)
		}
		for name, want := range map[string]string{"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin"} {
			if got := r.Header.Get(name); got != want {
				t.Errorf("%s %s: %s is %q, want %q", c.method, c.target, name, got, want)
			}
		}
		if c.method == http.MethodHead && body(t, r) != "" {
			t.Errorf("HEAD %s has a body", c.target)
		}
	}
}

func TestNotModified(t *testing.T) {
	tag := serve(t, Options{}, http.MethodGet, "/app/main.js", nil).Header.Get("ETag")
	r := serve(t, Options{}, http.MethodGet, "/app/main.js", http.Header{"If-None-Match": {tag}})
	if r.StatusCode != http.StatusNotModified || body(t, r) != "" {
		t.Errorf("a file that the browser has is sent again: %d", r.StatusCode)
	}
}

func TestConfig(t *testing.T) {
	got := body(t, serve(t, Options{Actions: true, Namespace: "shop"}, http.MethodGet, "/config.json", nil))
	if want := `{"actions":true,"namespace":"shop"}`; got != want {
		t.Errorf("config.json is %s, want %s", got, want)
	}
}

// TestSelfContained: the files load each other and nothing else, and nothing in them makes
// elements of text.
func TestSelfContained(t *testing.T) {
	files, err := read()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	imports := regexp.MustCompile(`from '\./([a-z]+\.js)'`)
	for at, f := range files {
		text.Write(f.body)
		for _, m := range imports.FindAllSubmatch(f.body, -1) {
			if _, ok := files["/app/"+string(m[1])]; !ok {
				t.Errorf("%s imports %s, which is not there", at, m[1])
			}
		}
		for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "DOMParser", "eval(", "new Function", "style=\"", "localStorage", "sessionStorage", "document.cookie", "//cdn"} {
			if strings.Contains(string(f.body), bad) {
				t.Errorf("%s has %s", at, bad)
			}
		}
	}
	for _, m := range regexp.MustCompile(`https?://[^\s"']+`).FindAllString(text.String(), -1) {
		if m != "http://www.w3.org/2000/svg" {
			t.Errorf("the page knows another server: %s", m)
		}
	}
	for at := range files {
		name := path.Base(at)
		if strings.HasPrefix(at, "/app/") && !strings.Contains(text.String(), name) {
			t.Errorf("nothing loads %s", at)
		}
	}
}
