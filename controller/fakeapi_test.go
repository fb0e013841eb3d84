package controller

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// fakeAPI is an API server that gives the answers which it is told. Without one it
// refuses a read, and takes a write as it is.
type fakeAPI struct {
	*httptest.Server
	mu      sync.Mutex
	asked   []string
	answers map[string]string
	changed chan struct{} // closed at the next change of the answers
}

func newFakeAPI(t *testing.T) *fakeAPI {
	t.Helper()
	api := &fakeAPI{answers: map[string]string{}, changed: make(chan struct{})}
	api.Server = httptest.NewServer(api)
	t.Cleanup(api.Close)
	return api
}

// waits is the answer of a request that gets no other one yet.
const waits = ""

// answer says how requests are answered, which are named as "get pods".
func (api *fakeAPI) answer(request, body string) {
	api.mu.Lock()
	defer api.mu.Unlock()
	api.answers[request] = body
	close(api.changed)
	api.changed = make(chan struct{})
}

// count of these requests so far.
func (api *fakeAPI) count(request string) int {
	n := 0
	for _, asked := range api.requests() {
		if asked == request {
			n++
		}
	}
	return n
}

func (api *fakeAPI) requests() []string {
	api.mu.Lock()
	defer api.mu.Unlock()
	return slices.Clone(api.asked)
}

func (api *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	verb, resource := verbAndResource(r)
	name := verb + " " + resource
	api.mu.Lock()
	api.asked = append(api.asked, name)
	body, known := api.answers[name]
	for ; known && body == waits; body = api.answers[name] {
		changed := api.changed
		api.mu.Unlock()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
		api.mu.Lock()
	}
	api.mu.Unlock()

	w.Header().Set("Content-Type", "application/json")
	switch {
	case known:
		_, _ = io.WriteString(w, body)
	case verb == "watch" && r.URL.Query().Has("sendInitialEvents"):
		w.WriteHeader(http.StatusUnprocessableEntity) // as servers that do not stream lists
	case verb == "watch":
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case r.Method == http.MethodGet:
		w.WriteHeader(http.StatusNotFound)
	default:
		if r.Method != http.MethodPatch {
			w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		}
		_, _ = io.Copy(w, r.Body)
	}
}
