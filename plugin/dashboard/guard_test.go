package dashboard

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestGuard(t *testing.T) {
	inside := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	g := newGuard("right", "4000", inside)
	const host, token = "127.0.0.1:4000", "Bearer right"
	for _, c := range []struct {
		name   string
		path   string
		host   string
		header map[string]string
		code   int
	}{
		{"the page needs no token", "/", host, nil, http.StatusTeapot},
		{"nor do its files", "/app/main.js", "localhost:4000", nil, http.StatusTeapot},
		{"the API with the token", "/api/v1/tapps", host, map[string]string{"Authorization": token}, http.StatusTeapot},
		{"the page itself", "/actions/run", host, map[string]string{"Authorization": token, "Origin": "http://" + host, "Sec-Fetch-Site": "same-origin"}, http.StatusTeapot},
		{"no token", "/api/v1/tapps", host, nil, http.StatusUnauthorized},
		{"another token", "/api/v1/tapps", host, map[string]string{"Authorization": "Bearer wrong"}, http.StatusUnauthorized},
		{"part of the token", "/api/v1/tapps", host, map[string]string{"Authorization": "Bearer righ"}, http.StatusUnauthorized},
		{"a token of another scheme", "/api/v1/tapps", host, map[string]string{"Authorization": "Basic right"}, http.StatusUnauthorized},
		{"the token in the query", "/api/v1/tapps?token=right", host, nil, http.StatusUnauthorized},
		{"the token in a cookie", "/actions/run", host, map[string]string{"Cookie": "token=right"}, http.StatusUnauthorized},
		{"a name of another site that leads here", "/", "evil.example:4000", nil, http.StatusMisdirectedRequest},
		{"another port", "/", "127.0.0.1:4001", nil, http.StatusMisdirectedRequest},
		{"another origin", "/api/v1/tapps", host, map[string]string{"Authorization": token, "Origin": "http://evil.example"}, http.StatusForbidden},
		{"the origin of a file", "/actions/run", host, map[string]string{"Authorization": token, "Origin": "null"}, http.StatusForbidden},
		{"an origin by TLS", "/actions/run", host, map[string]string{"Authorization": token, "Origin": "https://" + host}, http.StatusForbidden},
		{"another site", "/actions/run", host, map[string]string{"Authorization": token, "Sec-Fetch-Site": "cross-site"}, http.StatusForbidden},
		{"another port of this machine", "/actions/run", host, map[string]string{"Authorization": token, "Sec-Fetch-Site": "same-site"}, http.StatusForbidden},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, c.path, nil)
			r.Host = c.host
			for k, v := range c.header {
				r.Header.Set(k, v)
			}
			w := httptest.NewRecorder()
			g.ServeHTTP(w, r)
			if w.Code != c.code {
				t.Errorf("%d %s, want %d", w.Code, w.Body, c.code)
			}
			if w.Code != http.StatusTeapot && (!strings.Contains(w.Body.String(), `"kind":"Status"`) || w.Header().Get("Access-Control-Allow-Origin") != "") {
				t.Errorf("refused by %s with %v", w.Body, w.Header())
			}
		})
	}
}

func TestTokens(t *testing.T) {
	a, b := newToken(), newToken()
	if len(a) != 43 || a == b {
		t.Errorf("tokens %q and %q: want two of 256 bits", a, b)
	}
}
