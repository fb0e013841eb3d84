package source_test

import (
	"bytes"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"tkestack.io/tapp/helm/source"
)

// index is one as helm writes it.
func index(versions ...string) []byte {
	var b strings.Builder
	b.WriteString("apiVersion: v1\nentries:\n  another:\n  - name: another\n    urls:\n    - another-9.9.9.tgz\n    version: 9.9.9\n  web:\n")
	for _, v := range versions {
		version, digest, _ := strings.Cut(v, "@")
		fmt.Fprintf(&b, "  - apiVersion: v2\n    description: |\n      web: a chart\n    name: web\n    digest: %q\n    urls:\n    - charts/web-%s.tgz\n    version: %s\n", digest, version, version)
	}
	b.WriteString("  webs:\n  - name: webs\n    urls: [webs.tgz]\n    version: 7.0.0\ngenerated: \"2026-01-01T00:00:00Z\"\n")
	return []byte(b.String())
}

func TestRepository(t *testing.T) {
	s := serve(t)
	web := map[string][]byte{}
	var listed []string
	for _, v := range []string{"1.0.0", "1.2.0", "1.10.0", "2.0.0-rc.1", "0.9.0+build.7"} {
		web[v] = chart(t, "web", v)
		s.files["/stable/charts/web-"+v+".tgz"] = body(web[v])
		listed = append(listed, v+"@"+digest(web[v]))
	}
	s.files["/stable/index.yaml"] = body(index(listed...))
	options := source.Options{Repositories: file(t, s, entry("stable", s.URL+"/stable", ", username: me, password: secret")), AllowPrivate: true}
	for want, found := range map[string]string{
		"": "1.10.0", "1.2.0": "1.2.0", "^1": "1.10.0", "~1.2": "1.2.0", "1.x": "1.10.0", "<1.10": "1.2.0", "1.0": "1.0.0",
		"2.0.0-rc.1": "2.0.0-rc.1", ">=2.0.0-0": "2.0.0-rc.1", "0.9.0+build.7": "0.9.0+build.7", "v1.2.0": "1.2.0",
	} {
		got, err := resolve(t, options, "stable/web", want)
		if err != nil {
			t.Errorf("%q: %v", want, err)
			continue
		}
		same := &source.Chart{Archive: web[found], Digest: "sha256:" + digest(web[found]), Name: "web", Version: found}
		if !reflect.DeepEqual(got, same) {
			t.Errorf("%q: got %s %s", want, got.Version, got.Digest)
		}
	}
	for _, asked := range s.asked {
		if !strings.HasSuffix(asked, " me") {
			t.Errorf("asked without credentials: %s", asked)
		}
	}
	if raw, err := source.New(options).Fetch(t.Context(), "stable/web", "1.2.0"); err != nil || !bytes.Equal(raw, web["1.2.0"]) {
		t.Errorf("Fetch: %v", err)
	}
	// By its URL, the repository's credentials and CA are used too.
	if _, err := resolve(t, options, s.URL+"/stable/charts/web-1.0.0.tgz", ""); err != nil {
		t.Error(err)
	}
}

// TestIndexForms: what other programs write is read as well.
func TestIndexForms(t *testing.T) {
	s := serve(t)
	s.files["/web.tgz"] = body(chart(t, "web", "1.0.0"))
	options := source.Options{Repositories: file(t, s, entry("r", s.URL, "")), AllowPrivate: true}
	for name, text := range map[string]string{
		"JSON":             `{"apiVersion": "v1", "entries": {"web": [{"version": "1.0.0", "urls": ["web.tgz"]}]}}`,
		"flow":             `entries: {web: [{version: 1.0.0, urls: [web.tgz]}]}`,
		"quoted keys":      "entries:\n    \"web\":\n        - version: 1.0.0\n          urls: [web.tgz]\n",
		"items at the key": "entries:\n  web:\n  - version: 1.0.0\n    urls:\n    - web.tgz\n",
		"an absolute URL":  "entries:\n  web:\n  - version: 1.0.0\n    urls: [" + s.URL + "/web.tgz]\n",
		"windows":          "entries:\r\n  web:\r\n  - version: 1.0.0\r\n    urls: [web.tgz]\r\n",
		"much beside it":   "entries:\n  other:\n  - description: " + strings.Repeat("x", 8<<20) + "\n  web:\n  - {version: 1.0.0, urls: [web.tgz]}\n",
	} {
		s.files["/index.yaml"] = body([]byte(text))
		if _, err := resolve(t, options, "r/web", "1.0.0"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBadRepositories(t *testing.T) {
	s := serve(t)
	web, other := chart(t, "web", "1.0.0"), chart(t, "other", "1.0.0")
	s.files["/index.yaml"] = body(index("1.0.0@" + digest(other)))
	s.files["/charts/web-1.0.0.tgz"] = body(web)
	s.files["/403/index.yaml"] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }
	s.files["/html/index.yaml"] = body([]byte("<html>log in</html>"))
	s.files["/huge/index.yaml"] = body(bytes.Repeat([]byte("# comment\n"), 4<<20))
	s.files["/much/index.yaml"] = body([]byte("entries:\n  web:\n  - description: " + strings.Repeat("x", 5<<20) + "\n"))
	s.files["/name/index.yaml"] = body(index("1.0.0"))
	s.files["/name/charts/web-1.0.0.tgz"] = body(other)
	s.files["/version/index.yaml"] = body(index("1.0.1"))
	s.files["/version/charts/web-1.0.1.tgz"] = body(web)
	s.files["/big/index.yaml"] = body(index("1.0.0"))
	s.files["/big/charts/web-1.0.0.tgz"] = body(make([]byte, 1<<20+1))
	s.files["/none/index.yaml"] = body(index("1.0.0"))
	s.files["/text/index.yaml"] = body(index("1.0.0"))
	s.files["/text/charts/web-1.0.0.tgz"] = body([]byte("hello"))
	s.files["/ftp/index.yaml"] = body([]byte("entries:\n  web:\n  - {version: 1.0.0, urls: ['ftp://example.com/web.tgz']}\n"))
	s.files["/round/index.yaml"] = redirect("/round/index.yaml")
	s.files["/plain/index.yaml"] = redirect("http://example.com/index.yaml?signature=secret")
	s.files["/slow/index.yaml"] = func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	s.files["/drip/index.yaml"] = func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("entries:\n"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	entries := []string{entry("liar", s.URL, ""), "- {name: unknown-ca, url: '" + s.URL + "'}\n", entry("login", s.URL, ", username: me, password: secret"),
		entry("http", "http://example.com", ", username: me, password: secret"), entry("ftp-base", "ftp://example.com", ""),
		"- {name: no-ca, url: '" + s.URL + "', caFile: missing.crt}\n"}
	for _, name := range []string{"403", "404", "html", "huge", "much", "name", "version", "big", "none", "text", "ftp", "round", "plain", "slow", "drip"} {
		entries = append(entries, entry("r"+name, s.URL+"/"+name, ""))
	}
	repositories := file(t, s, entries...)
	for _, c := range []struct{ url, version, want string }{
		{"liar/web", "", "chart liar/web: the archive has the digest sha256:" + digest(web) + ", and the index of the repository says sha256:" + digest(other)},
		{"liar/web", "^2", "chart liar/web ^2: repository liar: there is no version ^2"},
		{"liar/web", "a b", `chart liar/web a b: repository liar: "a b" is no version and no range of versions`},
		{"liar/nothing", "", "chart liar/nothing: the index of repository liar: it has no chart nothing"},
		{"r403/web", "", "chart r403/web: GET " + s.URL + "/403/index.yaml: the server says 403 Forbidden"},
		{"r404/web", "", "chart r404/web: GET " + s.URL + "/404/index.yaml: the server says 404 Not Found"},
		{"rhtml/web", "", "chart rhtml/web: the index of repository rhtml: it is no index of charts"},
		{"rhuge/web", "", "chart rhuge/web: GET " + s.URL + "/huge/index.yaml: it has more than 33554432 bytes"},
		{"rmuch/web", "", "chart rmuch/web: the index of repository rmuch: it has more than 4194304 bytes about chart web"},
		{"rname/web", "", "chart rname/web: the archive holds chart other"},
		{"rversion/web", "", "chart rversion/web: the archive holds version 1.0.0"},
		{"rbig/web", "", "chart rbig/web: GET " + s.URL + "/big/charts/web-1.0.0.tgz: it has more than 1048576 bytes"},
		{"rnone/web", "", "chart rnone/web: GET " + s.URL + "/none/charts/web-1.0.0.tgz: the server says 404 Not Found"},
		{"rtext/web", "", "chart rtext/web: it is no archive of a chart: no gzip"},
		{"rftp/web", "", "chart rftp/web: the index of repository rftp gives version 1.0.0 a URL with scheme ftp"},
		{"rround/web", "", "chart rround/web: GET " + s.URL + "/round/index.yaml: more than 5 redirects"},
		{"rplain/web", "", "chart rplain/web: GET " + s.URL + "/plain/index.yaml: a redirect from https to http://example.com/index.yaml"},
		{"rslow/web", "", "chart rslow/web: not done within 2s"},
		{"rdrip/web", "", "chart rdrip/web: not done within 2s"},
		{"unknown-ca/web", "", "chart unknown-ca/web: GET " + s.URL + "/index.yaml: tls: failed to verify certificate: x509: certificate signed by unknown authority"},
		{"no-ca/web", "", "chart no-ca/web: repository no-ca: caFile: open *: no such file or directory"},
		{"http/web", "", "chart http/web: repository http: credentials are sent by https only"},
		{"ftp-base/web", "", "chart ftp-base/web: repository ftp-base: its url has to be http://, https:// or oci://, without credentials"},
		{"web", "", "chart web: write alias/name with the alias of a repository, oci://host/path/name, or the https URL of an archive"},
		{"http://example.com/web.tgz", "", "chart http://example.com/web.tgz: charts come by https://, oci:// or alias/name"},
		{"https://example.com/web.tgz", "", "chart https://example.com/web.tgz: host example.com is in no repository of the operator's file, and other hosts are not allowed (--allow-chart-urls)"},
		{"oci://example.com/web", "1.0.0", "chart oci://example.com/web 1.0.0: host example.com is in no repository of the operator's file, and other hosts are not allowed (--allow-chart-urls)"},
		{s.URL + "/charts/web-1.0.0.tgz", "2.0.0", "chart " + s.URL + "/charts/web-1.0.0.tgz 2.0.0: the archive holds version 1.0.0"},
		{"https://me:secret@example.com/web.tgz?token=secret", "", "chart https://example.com/web.tgz: credentials belong into the repositories file, not into the URL"},
	} {
		t.Run(c.url, func(t *testing.T) {
			options := source.Options{Repositories: repositories, AllowPrivate: true, Time: time.Minute}
			if strings.Contains(c.want, "not done within") {
				options.Time = 2 * time.Second
			}
			_, err := resolve(t, options, c.url, c.version)
			if err == nil || !matches(c.want, err.Error()) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// matches compares; a "*" in want stands for any text.
func matches(want, got string) bool {
	head, tail, open := strings.Cut(want, " *")
	if !open {
		return got == want
	}
	return strings.HasPrefix(got, head) && strings.HasSuffix(got, tail)
}

func TestBadRepositoriesFile(t *testing.T) {
	s := serve(t)
	for _, c := range []struct{ entries, want string }{
		{"- {name: a, password: secret, url: [}", "chart a/web: reading the repositories file: it is not in Helm's format"},
		{"-\n", "chart a/web: reading the repositories file: an entry is empty"},
		{"- {name: b, url: 'https://b'}\n- {name: c, url: 'https://c'}\n", "chart a/web: there is no repository a: the operator's file has b, c"},
		{"- {name: a, url: 'https://a', insecure_skip_tls_verify: true}\n", "chart a/web: repository a: insecure_skip_tls_verify and pass_credentials_all are not supported; name the CA in caFile, and the other host in an entry of its own"},
		{"", "chart a/web: there is no repository a: the operator has given no repositories file, or it has no entries (--chart-repositories)"},
	} {
		_, err := resolve(t, source.Options{Repositories: file(t, s, c.entries)}, "a/web", "")
		if err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
	if _, err := resolve(t, source.Options{Repositories: "/nowhere/repositories.yaml"}, "a/web", ""); err == nil || !strings.Contains(err.Error(), "there is no repository a") {
		t.Errorf("a file that is not there yet: %v", err)
	}
}

// TestPrivateAddresses: neither a repository nor a redirect reaches them.
func TestPrivateAddresses(t *testing.T) {
	s := serve(t)
	options := source.Options{Repositories: file(t, s, entry("local", s.URL, "")), AllowURLs: true}
	for _, url := range []string{"local/web", s.URL + "/web.tgz", "https://localhost:1/web.tgz", "oci://" + host(s) + "/web", "https://[::1]:1/web.tgz", "https://[::ffff:127.0.0.1]:1/web.tgz"} {
		_, err := resolve(t, options, url, "1.0.0")
		if err == nil || !strings.Contains(err.Error(), "is not public, and such are not allowed (--allow-private-charts)") {
			t.Errorf("%s: %v", url, err)
		}
	}
	if len(s.asked) > 0 {
		t.Errorf("asked for %v", s.asked)
	}
}

// TestCredentialsStay: redirects to another host do not get them.
func TestCredentialsStay(t *testing.T) {
	s, other := serve(t), serve(t)
	web := chart(t, "web", "1.0.0")
	s.files["/index.yaml"] = body([]byte("entries:\n  web:\n  - {version: 1.0.0, urls: [web.tgz]}\n  far:\n  - {version: 1.0.0, urls: ['" + other.URL + "/far.tgz']}\n"))
	s.files["/web.tgz"] = redirect(other.URL + "/web.tgz")
	other.files["/web.tgz"] = body(web)
	other.files["/far.tgz"] = body(chart(t, "far", "1.0.0"))
	repositories := file(t, s, entry("r", s.URL, ", username: me, password: secret"), entry("far", other.URL, ""))
	for _, name := range []string{"r/web", "r/far"} {
		if _, err := resolve(t, source.Options{Repositories: repositories, AllowPrivate: true}, name, ""); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"/index.yaml me", "/web.tgz me", "/index.yaml me"}; !reflect.DeepEqual(s.asked, want) {
		t.Errorf("the repository was asked %v", s.asked)
	}
	if want := []string{"/web.tgz", "/far.tgz"}; !reflect.DeepEqual(other.asked, want) {
		t.Errorf("the other host was asked %v", other.asked)
	}
}
