//go:build cluster

package page

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/api/page"
)

// object is what a route answers with.
type object = map[string]any

// event of a stream.
type event struct {
	name string
	body object
}

// fake serves the page, and says on the routes of the API what a test wants to see. It is
// here for what takes too long or is too bad to have a cluster say it: 10,000 instances,
// hostile texts, refusals, a server that goes away.
type fake struct {
	t       *testing.T
	address string
	page    http.Handler

	mu       sync.Mutex
	server   *http.Server
	token    string             // asked for, if there is one
	lists    map[string][]entry // path -> objects in their order
	refused  map[string]metav1.Status
	sums     map[string]object // path -> what lists have beside their items
	watchers map[string][]chan event
	posts    map[string]func(body []byte) (object, *metav1.Status)
}

type entry struct {
	key string
	object
}

func newFake(t *testing.T, o page.Options) *fake {
	t.Helper()
	handler, err := page.New(o)
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{t: t, page: handler, lists: map[string][]entry{}, refused: map[string]metav1.Status{}, watchers: map[string][]chan event{}, sums: map[string]object{},
		posts: map[string]func([]byte) (object, *metav1.Status){}}
	for _, path := range []string{"tapps", "appsets", "apps", "clusters"} {
		f.lists["/api/v1/"+path] = nil
	}
	f.lists["/api/openapi.json"] = []entry{{"", object{"paths": object{"/api/v1/tapps": object{}, "/api/v1/apps": object{}, "/api/v1/appsets": object{}, "/api/v1/clusters": object{},
		"/api/v1/namespaces/{namespace}/tapps/{name}/history": object{}, "/api/v1/namespaces/{namespace}/appsets/{name}/history": object{},
		"/api/v1/namespaces/{namespace}/appsets/{name}/instances": object{}}}}}
	f.start("127.0.0.1:0")
	t.Cleanup(f.stop)
	return f
}

func (f *fake) url(path string) string { return "http://" + f.address + path }

// start serves on an address; with that of before it is a server that comes back.
func (f *fake) start(address string) {
	f.t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(f.t.Context(), "tcp", address)
	if err != nil {
		f.t.Fatal(err)
	}
	f.address = listener.Addr().String()
	f.server = &http.Server{Handler: f}
	go func(s *http.Server) { _ = s.Serve(listener) }(f.server)
}

// stop closes every connection.
func (f *fake) stop() {
	if err := f.server.Close(); err != nil {
		f.t.Error(err)
	}
}

// put objects of a route: those that it does not have are added.
func (f *fake) put(path string, entries ...entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := make(map[string]int, len(f.lists[path]))
	for i, e := range f.lists[path] {
		at[e.key] = i
	}
	items := make([]object, len(entries))
	for n, e := range entries {
		items[n] = e.object
		if i, ok := at[e.key]; ok {
			f.lists[path][i] = e
			continue
		}
		f.lists[path] = append(f.lists[path], e)
	}
	f.tell(path, event{"change", object{"items": items}})
}

// sum is what a list has beside its items.
func (f *fake) sum(path string, members object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sums[path] = members
}

// drop objects of a route.
func (f *fake) drop(path string, keys ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lists[path] = slices.DeleteFunc(f.lists[path], func(e entry) bool { return slices.Contains(keys, e.key) })
	f.tell(path, event{"change", object{"removed": keys, "items": []object{}}})
}

// tell those who watch a path. What has one object without a key is that object.
func (f *fake) tell(path string, e event) {
	if list := f.lists[path]; len(list) == 1 && list[0].key == "" {
		e = event{"object", list[0].object}
	} else {
		e.body["total"] = len(list)
		maps.Copy(e.body, f.sums[path])
	}
	for _, w := range f.watchers[path] {
		w <- e
	}
}

// refuse a route from now on.
func (f *fake) refuse(path string, code int32, reason metav1.StatusReason, message string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refused[path] = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	if !strings.HasPrefix(path, "/api/") && !strings.HasPrefix(path, "/actions/") {
		f.page.ServeHTTP(w, r)
		return
	}
	f.mu.Lock()
	token, status := f.token, f.refused[path]
	_, known := f.lists[path]
	post := f.posts[path]
	f.mu.Unlock()
	if token != "" && r.Header.Get("Authorization") != "Bearer "+token {
		status = metav1.Status{Code: http.StatusUnauthorized, Reason: metav1.StatusReasonUnauthorized, Message: "the token is not valid"}
	}
	switch {
	case status.Code != 0:
		answer(w, int(status.Code), status)
	case r.Method == http.MethodPost && post != nil:
		body := make([]byte, r.ContentLength)
		if _, err := r.Body.Read(body); err != nil && len(body) == 0 {
			f.t.Error(err)
		}
		out, status := post(body)
		if status != nil {
			answer(w, int(status.Code), status)
			return
		}
		answer(w, http.StatusOK, out)
	case !known:
		answer(w, http.StatusNotFound, metav1.Status{Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Message: path + " not found"})
	case r.URL.Query().Get("watch") != "":
		f.watch(w, r)
	default:
		f.mu.Lock()
		body := f.list(path).body
		f.mu.Unlock()
		answer(w, http.StatusOK, body)
	}
}

// list is all of a path.
func (f *fake) list(path string) event {
	list := f.lists[path]
	if len(list) == 1 && list[0].key == "" {
		return event{"object", list[0].object}
	}
	items := make([]object, len(list))
	for i := range list {
		items[i] = list[i].object
	}
	body := object{"items": items, "total": len(items)}
	maps.Copy(body, f.sums[path])
	return event{"list", body}
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // the browser may be gone
}

func (f *fake) watch(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	changes := make(chan event, 1024)
	f.mu.Lock()
	first := f.list(path)
	f.watchers[path] = append(f.watchers[path], changes)
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.watchers[path] = slices.DeleteFunc(f.watchers[path], func(c chan event) bool { return c == changes })
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	send(w, first)
	for {
		select {
		case e := <-changes:
			send(w, e)
		case <-r.Context().Done():
			return
		}
	}
}

func send(w http.ResponseWriter, e event) {
	body, err := json.Marshal(e.body)
	if err != nil {
		panic(err) // it ends this request only, and shows in the browser
	}
	_, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", e.name, body)
	w.(http.Flusher).Flush()
}
