package source_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"tkestack.io/tapp/helm/source"
	"tkestack.io/tapp/test/gen"
)

// chart packs a chart of that name and version.
func chart(t testing.TB, name, version string) []byte {
	t.Helper()
	return gen.Archive(t, map[string]string{name + "/Chart.yaml": "apiVersion: v2\nname: " + name + "\nversion: " + version + "\n"})
}

func digest(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// server is a repository: files by path. It remembers who asked for what.
type server struct {
	*httptest.Server
	files map[string]http.HandlerFunc
	// push stores a chart in a registry.
	push func(name, tag, layerType string, archive []byte) (digest string)

	mu    sync.Mutex
	asked []string
}

func serve(t testing.TB) *server {
	s := &server{files: map[string]http.HandlerFunc{}}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, _, _ := r.BasicAuth()
		if user == "" {
			user, _, _ = strings.Cut(r.Header.Get("Authorization"), " ")
		}
		s.mu.Lock()
		s.asked = append(s.asked, strings.TrimSpace(r.URL.Path+" "+user))
		s.mu.Unlock()
		if handle := s.files[r.URL.Path]; handle != nil {
			handle(w, r)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func body(raw []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(raw) }
}

func redirect(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) }
}

// file writes a repositories file, with the CA of the tests' servers beside it.
func file(t testing.TB, s *server, entries ...string) string {
	t.Helper()
	folder := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	write(t, filepath.Join(folder, "ca.crt"), ca)
	write(t, filepath.Join(folder, "repositories.yaml"), []byte("apiVersion: v1\nrepositories:\n"+strings.Join(entries, "")))
	return filepath.Join(folder, "repositories.yaml")
}

func write(t testing.TB, name string, raw []byte) {
	t.Helper()
	if err := os.WriteFile(name, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

func entry(alias, url, more string) string {
	return fmt.Sprintf("- {name: %s, url: %q, caFile: ca.crt%s}\n", alias, url, more)
}

func host(s *server) string { return strings.TrimPrefix(s.URL, "https://") }

func resolve(t testing.TB, options source.Options, url, version string) (*source.Chart, error) {
	t.Helper()
	return source.New(options).Resolve(t.Context(), source.Reference{URL: url, Version: version})
}
