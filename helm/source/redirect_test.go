package source

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRedirectsAreJudged: a public repository may send to a private address, by a
// redirect, by its index, or as the place where tokens come from. The first server
// stands for the public one.
func TestRedirectsAreJudged(t *testing.T) {
	asked := false
	private := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer private.Close()
	public := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/redirect/index.yaml":
			http.Redirect(w, r, private.URL+"/latest/meta-data", http.StatusFound)
		case r.URL.Path == "/index/index.yaml":
			fmt.Fprintf(w, "entries:\n  web:\n  - {version: 1.0.0, urls: ['%s/web.tgz']}\n", private.URL)
		case strings.HasPrefix(r.URL.Path, "/v2/blob/"):
			http.Redirect(w, r, private.URL+"/blob", http.StatusTemporaryRedirect)
		default:
			w.Header().Set("Www-Authenticate", `Bearer realm="`+private.URL+`/token"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer public.Close()
	folder := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: public.Certificate().Raw})
	host := strings.TrimPrefix(public.URL, "https://")
	text := "repositories:\n"
	for _, r := range [][2]string{{"redirect", public.URL + "/redirect"}, {"index", public.URL + "/index"}, {"realm", "oci://" + host + "/token"}, {"blob", "oci://" + host + "/blob"}} {
		text += fmt.Sprintf("- {name: %s, url: %q, caFile: ca.crt}\n", r[0], r[1])
	}
	for name, raw := range map[string][]byte{"ca.crt": ca, "repositories.yaml": []byte(text)} {
		if err := os.WriteFile(filepath.Join(folder, name), raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := New(Options{Repositories: filepath.Join(folder, "repositories.yaml")})
	s.judge = func(address string) error {
		if address == host {
			return nil
		}
		return judge(address)
	}
	const refused = "address 127.0.0.1 is not public, and such are not allowed (--allow-private-charts)"
	for _, alias := range []string{"redirect", "index", "realm", "blob"} {
		if _, err := s.Resolve(t.Context(), Reference{URL: alias + "/web", Version: "1.0.0"}); err == nil || !strings.HasSuffix(err.Error(), refused) {
			t.Errorf("%s: %v", alias, err)
		}
	}
	if asked {
		t.Error("the private server was asked")
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestGuard: what leaves for which host.
func TestGuard(t *testing.T) {
	sent := ""
	next := roundTrip(func(r *http.Request) (*http.Response, error) {
		sent = r.Header.Get("Authorization")
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	})
	g := &guard{next: next, host: "own.example.com", repository: &Repository{URL: "https://own.example.com", Username: "me", Password: "secret"}}
	for _, c := range []struct{ url, header, want string }{
		{"https://own.example.com/a", "", "Basic bWU6c2VjcmV0"},
		{"https://own.example.com/a", "Bearer abc", "Bearer abc"},
		{"http://own.example.com/a", "", ""},
		{"https://own.example.com:8443/a", "", ""},
		{"https://other.example.com/a", "", ""},
		{"https://other.example.com/a", "Bearer abc", ""},
		{"https://sub.own.example.com/a", "Bearer abc", ""},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.header != "" {
			request.Header.Set("Authorization", c.header)
		}
		response, err := g.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if sent != c.want {
			t.Errorf("%s with %q: sent %q, want %q", c.url, c.header, sent, c.want)
		}
		if request.Header.Get("Authorization") != c.header {
			t.Errorf("%s: the request was changed", c.url)
		}
	}
}
