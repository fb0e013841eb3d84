package process

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// TestAuthorizer: who gets the metrics, and that the API server is not asked each time.
func TestAuthorizer(t *testing.T) {
	var asked atomic.Int32
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		body, _ := io.ReadAll(r.Body)
		var answer any
		switch r.URL.Path {
		case "/apis/authentication.k8s.io/v1/tokenreviews":
			var review authenticationv1.TokenReview
			if err := json.Unmarshal(body, &review); err != nil {
				t.Error(err)
			}
			if review.Spec.Token == "outage" {
				http.Error(w, "away", http.StatusInternalServerError)
				return
			}
			review.Status.Authenticated = review.Spec.Token != "forged"
			review.Status.User = authenticationv1.UserInfo{Username: review.Spec.Token, Groups: []string{"g"}, Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}}}
			answer = review
		case "/apis/authorization.k8s.io/v1/subjectaccessreviews":
			var review authorizationv1.SubjectAccessReview
			if err := json.Unmarshal(body, &review); err != nil {
				t.Error(err)
			}
			s := review.Spec
			review.Status.Allowed = s.User == "prometheus" && s.Groups[0] == "g" && s.Extra["k"][0] == "v" && s.NonResourceAttributes.Path == "/metrics" && s.NonResourceAttributes.Verb == "get"
			answer = review
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	defer api.Close()
	a, err := NewAuthorizer(&rest.Config{Host: api.URL, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}})
	if err != nil {
		t.Fatal(err)
	}
	h := a.Protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { ok(w) }))
	for _, c := range []struct {
		authorization string
		code          int
		body          string
		asks          int32
	}{
		{"", 401, "give a bearer token\n", 0},
		{"Basic x", 401, "give a bearer token\n", 0},
		{"Bearer ", 401, "give a bearer token\n", 0},
		{"Bearer forged", 401, "unauthorized\n", 1},
		{"Bearer forged", 401, "unauthorized\n", 0},
		{"Bearer stranger", 403, "forbidden\n", 2},
		{"Bearer stranger", 403, "forbidden\n", 0},
		{"Bearer prometheus", 200, "ok\n", 2},
		{"Bearer prometheus", 200, "ok\n", 0},
		{"Bearer outage", 503, "the API server could not be asked who you are\n", 1},
		{"Bearer outage", 503, "the API server could not be asked who you are\n", 1},
	} {
		before := asked.Load()
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Header.Set("Authorization", c.authorization)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.code || w.Body.String() != c.body || asked.Load()-before != c.asks {
			t.Errorf("%q: got %d and %q after %d questions, want %+v", c.authorization, w.Code, w.Body, asked.Load()-before, c)
		}
	}
}
