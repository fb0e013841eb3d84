package source_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"tkestack.io/tapp/helm/source"
)

// registries is a registry behind the server of a test, with a front that may refuse.
func registries(t *testing.T, front func(http.Handler) http.Handler) *server {
	s := serve(t)
	memory := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	handler := memory
	if front != nil {
		handler = front(memory)
	}
	next := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v2/") {
			handler.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
	s.push = func(name, tag, layerType string, archive []byte) string {
		config := []byte("{}")
		manifest, err := json.Marshal(map[string]any{
			"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
			"config": descriptor("application/vnd.cncf.helm.config.v1+json", config),
			"layers": []any{descriptor(layerType, archive)},
		})
		if err != nil {
			t.Fatal(err)
		}
		upload(t, memory, "/v2/"+name+"/blobs/uploads/?digest=sha256:"+digest(config), http.MethodPost, "", config)
		upload(t, memory, "/v2/"+name+"/blobs/uploads/?digest=sha256:"+digest(archive), http.MethodPost, "", archive)
		upload(t, memory, "/v2/"+name+"/manifests/"+tag, http.MethodPut, "application/vnd.oci.image.manifest.v1+json", manifest)
		return "sha256:" + digest(manifest)
	}
	return s
}

func descriptor(mediaType string, raw []byte) map[string]any {
	sum := sha256.Sum256(raw)
	return map[string]any{"mediaType": mediaType, "size": len(raw), "digest": "sha256:" + hex.EncodeToString(sum[:])}
}

type recorder struct {
	header http.Header
	code   int
	bytes.Buffer
}

func (r *recorder) Header() http.Header  { return r.header }
func (r *recorder) WriteHeader(code int) { r.code = code }

func upload(t *testing.T, to http.Handler, path, method, contentType string, raw []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "https://registry"+path, bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", contentType)
	answer := &recorder{header: http.Header{}}
	to.ServeHTTP(answer, request)
	if answer.code != http.StatusCreated {
		t.Fatalf("%s %s: %d %s", method, path, answer.code, answer.String())
	}
}

const helmLayer = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"

func TestRegistry(t *testing.T) {
	s := registries(t, nil)
	pinned := ""
	for _, v := range []string{"1.0.0", "1.2.0", "1.10.0", "2.0.0-rc.1", "0.9.0_build.7"} {
		pinned = s.push("charts/web", v, helmLayer, chart(t, "web", strings.ReplaceAll(v, "_", "+")))
	}
	options := source.Options{AllowPrivate: true, Repositories: file(t, s, entry("ours", "oci://"+host(s)+"/charts", ""))}
	for _, c := range []struct{ url, version, found string }{
		{"ours/web", "", "1.10.0"}, {"ours/web", "1.2.0", "1.2.0"}, {"ours/web", "~1.2", "1.2.0"}, {"ours/web", "0.9.0+build.7", "0.9.0+build.7"},
		{"oci://" + host(s) + "/charts/web", "^1", "1.10.0"},
		{"oci://" + host(s) + "/charts/web:1.0.0", "", "1.0.0"},
		{"oci://" + host(s) + "/charts/web@" + pinned, "", "0.9.0+build.7"},
		{"oci://" + host(s) + "/charts/web:1.0.0", "1.0.0", "1.0.0"},
	} {
		got, err := resolve(t, options, c.url, c.version)
		if err != nil || got.Version != c.found || got.Digest != "sha256:"+digest(got.Archive) {
			t.Errorf("%s %s: %+v, %v", c.url, c.version, got, err)
		}
	}
}

func TestBadRegistries(t *testing.T) {
	s := registries(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case strings.HasPrefix(r.URL.Path, "/v2/denied/"):
				w.WriteHeader(http.StatusForbidden)
				_, _ = w.Write([]byte(`{"errors": [{"code": "DENIED", "message": "requested access is denied"}]}`))
			case strings.HasPrefix(r.URL.Path, "/v2/lies/") && strings.Contains(r.URL.Path, "/blobs/"):
				w.Header().Set("Content-Length", fmt.Sprint(len(chart(t, "web", "1.0.0"))))
				_, _ = w.Write(chart(t, "wex", "1.0.0"))
			default:
				next.ServeHTTP(w, r)
			}
		})
	})
	s.push("charts/web", "1.0.0", helmLayer, chart(t, "web", "1.0.0"))
	s.push("charts/image", "1.0.0", "application/vnd.oci.image.layer.v1.tar", []byte("x"))
	s.push("charts/big", "1.0.0", helmLayer, make([]byte, 1<<20+1))
	s.push("charts/alias", "1.0.0", helmLayer, chart(t, "web", "1.0.0"))
	s.push("lies/web", "1.0.0", helmLayer, chart(t, "web", "1.0.0"))
	at := "oci://" + host(s)
	options := source.Options{AllowPrivate: true, Repositories: file(t, s, entry("ours", at, ""))}
	for _, c := range []struct{ url, version, want string }{
		{"/denied/web", "1.0.0", "HEAD https://" + host(s) + "/v2/denied/web/manifests/1.0.0: the server says 403 Forbidden"},
		{"/denied/web", "", "GET https://" + host(s) + "/v2/denied/web/tags/list: the server says 403 Forbidden: requested access is denied"},
		{"/charts/web", "^2", at + "/charts/web: there is no version ^2"},
		{"/charts/none", "1.0.0", "GET https://" + host(s) + "/v2/charts/none/tags/list: the server says 404 Not Found: Unknown name"},
		{"/charts/web:2.0.0", "", at + "/charts/web:2.0.0: *not found"},
		{"/charts/web:1.0.0", "2.0.0", "the archive holds version 1.0.0"},
		{"/charts/image", "1.0.0", at + "/charts/image: it holds no chart of helm"},
		{"/charts/big", "1.0.0", at + "/charts/big: the archive has 1048577 bytes; at most 1048576 are possible"},
		{"/charts/alias", "1.0.0", "the archive holds chart web"},
		{"/lies/web", "1.0.0", at + "/lies/web: mismatched digest"},
		{"/UPPER/web", "1.0.0", "it is no reference like oci://host/path/name"},
	} {
		_, err := resolve(t, options, at+c.url, c.version)
		want := "chart " + strings.TrimSpace(at+c.url+" "+c.version) + ": " + c.want
		if err == nil || !matches(want, err.Error()) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// realm is a registry's login: it gives a token to those who know the password.
func realm(w http.ResponseWriter, r *http.Request) {
	if user, password, _ := r.BasicAuth(); user != "me" || password != "secret" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	_, _ = w.Write([]byte(`{"token": "abc"}`))
}

func wantToken(at func() string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer abc" {
				w.Header().Set("Www-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="registry"`, at()))
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

func TestLogin(t *testing.T) {
	basic := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if user, password, _ := r.BasicAuth(); user != "me" || password != "secret" {
				w.Header().Set("Www-Authenticate", `Basic realm="registry"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
	tokens := serve(t)
	tokens.files["/token"] = realm
	here := ""
	withBasic := registries(t, basic)
	withToken := registries(t, wantToken(func() string { return here }))
	here = withToken.URL
	withToken.files["/token"] = realm
	elsewhere := registries(t, wantToken(func() string { return tokens.URL }))
	for _, s := range []*server{withBasic, withToken, elsewhere} {
		s.push("charts/web", "1.0.0", helmLayer, chart(t, "web", "1.0.0"))
	}
	login := ", username: me, password: secret"
	for name, c := range map[string]struct {
		s       *server
		entries []string
		want    string
	}{
		"basic":          {withBasic, []string{entry("r", "oci://"+host(withBasic), login)}, ""},
		"token":          {withToken, []string{entry("r", "oci://"+host(withToken), login)}, ""},
		"no login":       {withBasic, []string{entry("r", "oci://"+host(withBasic), "")}, "*basic credential not found"},
		"wrong password": {withBasic, []string{entry("r", "oci://"+host(withBasic), ", username: me, password: other")}, "*the server says 401 Unauthorized"},
		"tokens elsewhere": {elsewhere, []string{entry("r", "oci://"+host(elsewhere), login)},
			"*" + host(tokens) + " gives the tokens of " + host(elsewhere) + ", and credentials go to no other host: give it an entry of its own in the repositories file"},
		"tokens elsewhere, known": {elsewhere, []string{entry("r", "oci://"+host(elsewhere), ", username: not, password: sent"), entry("t", tokens.URL, login)}, ""},
	} {
		_, err := resolve(t, source.Options{AllowPrivate: true, Repositories: file(t, c.s, c.entries...)}, "r/charts/web", "1.0.0")
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.HasSuffix(err.Error(), strings.TrimPrefix(c.want, "*"))):
			t.Errorf("%s: got  %v\nwant %s", name, err, c.want)
		}
	}
	for _, asked := range tokens.asked {
		if strings.HasSuffix(asked, " not") {
			t.Errorf("the registry's own credentials went to %s", asked)
		}
	}
}

// TestTokensStay: a registry may keep its blobs elsewhere, where its tokens do not go.
func TestTokensStay(t *testing.T) {
	blobs := serve(t)
	here := ""
	s := registries(t, func(next http.Handler) http.Handler {
		return wantToken(func() string { return here })(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/blobs/") {
				http.Redirect(w, r, blobs.URL+r.URL.Path, http.StatusTemporaryRedirect)
				return
			}
			next.ServeHTTP(w, r)
		}))
	})
	here = s.URL
	s.files["/token"] = realm
	web := chart(t, "web", "1.0.0")
	s.push("charts/web", "1.0.0", helmLayer, web)
	path := "/v2/charts/web/blobs/sha256:" + digest(web)
	blobs.files[path] = body(web)
	options := source.Options{AllowPrivate: true, Repositories: file(t, s, entry("r", "oci://"+host(s), ", username: me, password: secret"))}
	if _, err := resolve(t, options, "r/charts/web", "1.0.0"); err != nil {
		t.Fatal(err)
	}
	if len(blobs.asked) != 1 || blobs.asked[0] != path {
		t.Errorf("the other host was asked %v", blobs.asked)
	}
}
