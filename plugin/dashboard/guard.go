package dashboard

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// newToken is known to whoever reads the address that the command prints.
func newToken() string {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // it never fails
	return base64.RawURLEncoding.EncodeToString(secret)
}

// guard lets nobody in but the page that this server has sent, in the browser of who has
// the token. Other users of the machine reach the port, and every web page that the
// user's browser shows can send requests to it.
type guard struct {
	token string
	// hosts are the names of the server: a name of another site that leads to loopback is
	// not among them.
	hosts map[string]bool
	next  http.Handler
}

func newGuard(token, port string, next http.Handler) *guard {
	return &guard{token: token, next: next, hosts: map[string]bool{"127.0.0.1:" + port: true, "localhost:" + port: true}}
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	origin := r.Header.Get("Origin")
	site := r.Header.Get("Sec-Fetch-Site")
	switch {
	case !g.hosts[r.Host]:
		refuse(w, http.StatusMisdirectedRequest, metav1.StatusReasonForbidden, "the dashboard is not served under this name; open the address that kubectl tapp dashboard has printed")
	case origin != "" && origin != "http://"+r.Host:
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "another site may not ask the dashboard")
	case needsToken(r.URL.Path) && site != "" && site != "same-origin":
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "another site may not ask the dashboard")
	case needsToken(r.URL.Path) && !g.knows(r.Header.Get("Authorization")):
		w.Header().Set("WWW-Authenticate", "Bearer")
		refuse(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "the token is not that of this dashboard; open the address that kubectl tapp dashboard has printed")
	default:
		g.next.ServeHTTP(w, r)
	}
}

// needsToken: all but the files of the page, which tell nothing. A browser sends no token
// when it loads them.
func needsToken(path string) bool {
	return strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, "/actions/")
}

func (g *guard) knows(authorization string) bool {
	scheme, token, _ := strings.Cut(authorization, " ")
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare([]byte(token), []byte(g.token)) == 1
}
