package fleet

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

type object = map[string]any

// server is an API server of the fewest words: it lists, watches, patches and deletes what
// it has, and fails as a test tells it.
type server struct {
	*httptest.Server
	t *testing.T

	mu      sync.Mutex
	uid     string // of kube-system
	version int
	objects map[string]object // by path, such as secrets/ns/name
	events  []event
	news    chan struct{} // closed and replaced with each event
	hang    chan struct{} // not nil: no answer until it is closed
	mute    bool          // watches show nothing
	code    int           // not 0: of all answers
	noAPI   bool
	// readOnly refuses all patches.
	readOnly bool
	seen     []string       // requests
	asked    map[string]int // by bearer token
}

type event struct {
	kind, key string
	version   int
	object    object
}

func newServer(t *testing.T, uid string) *server {
	s := &server{t: t, uid: uid, version: 100, objects: map[string]object{}, asked: map[string]int{}, news: make(chan struct{})}
	s.Server = httptest.NewUnstartedServer(s)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(func() {
		s.set(func() { s.hang = nil })
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// kubeconfig to it, with changes.
func (s *server) kubeconfig(token string) string {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	text, _ := json.Marshal(object{
		"kind": "Config", "apiVersion": "v1", "current-context": "c",
		"contexts": []any{object{"name": "c", "context": object{"cluster": "c", "user": "u"}}},
		"clusters": []any{object{"name": "c", "cluster": object{"server": s.URL, "certificate-authority-data": ca}}},
		"users":    []any{object{"name": "u", "user": object{"token": token}}},
	})
	return string(text)
}

// set changes how it behaves.
func (s *server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before := s.hang; before != nil {
		defer func() {
			if s.hang == nil {
				close(before)
			}
		}()
	}
	change()
}

// put stores an object, or takes it away if it is nil.
func (s *server) put(key string, o object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store(key, o)
}

func (s *server) store(key string, o object) {
	s.version++
	kind := "MODIFIED"
	before, exists := s.objects[key]
	if o == nil {
		kind, o = "DELETED", clone(before)
		delete(s.objects, key)
	} else {
		if !exists {
			kind = "ADDED"
		}
		o = clone(o)
		s.objects[key] = o
	}
	meta := o["metadata"].(object)
	meta["resourceVersion"] = strconv.Itoa(s.version)
	if meta["uid"] == nil {
		meta["uid"] = key + "-" + strconv.Itoa(s.version)
	}
	s.tell(event{kind, key, s.version, clone(o)})
}

// bookmark lets the watches know how far they are.
func (s *server) bookmark() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.tell(event{"BOOKMARK", "", s.version, object{"metadata": object{"resourceVersion": strconv.Itoa(s.version)}}})
}

func (s *server) tell(e event) {
	s.events = append(s.events, e)
	close(s.news)
	s.news = make(chan struct{})
}

func clone(o object) object {
	text, _ := json.Marshal(o)
	var out object
	_ = json.Unmarshal(text, &out)
	return out
}

func (s *server) tokens() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.asked)
}

func (s *server) annotation(key, name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	annotations, _ := s.objects[key]["metadata"].(object)["annotations"].(object)
	value, _ := annotations[name].(string)
	return value
}

func (s *server) count(prefix string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, r := range s.seen {
		if strings.HasPrefix(r, prefix) {
			n++
		}
	}
	return n
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	hang, code, uid := s.hang, s.code, s.uid
	s.seen = append(s.seen, r.Method+" "+r.URL.Path)
	s.asked[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]++
	s.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
		return
	}
	if code != 0 {
		s.fail(w, code)
		return
	}
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.URL.Path == "/readyz" || r.URL.Path == "/livez":
		_, _ = io.WriteString(w, "ok")
	case r.URL.Path == "/api/v1/namespaces/kube-system":
		s.answer(w, object{"kind": "Namespace", "apiVersion": "v1", "metadata": object{"name": "kube-system", "uid": uid}})
	case path[0] == "api":
		s.resource(w, r, path[2:], "v1")
	case s.noAPI:
		s.fail(w, 404)
	default:
		s.resource(w, r, path[3:], path[1]+"/"+path[2])
	}
}

func (s *server) fail(w http.ResponseWriter, code int) {
	reasons := map[int]string{401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 409: "Conflict", 422: "Invalid", 500: "InternalError"}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reasons[code], "message": reasons[code] + " as the test said"})
}

func (s *server) answer(w http.ResponseWriter, o object) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(o)
}

var kinds = map[string]string{"secrets": "Secret", "configmaps": "ConfigMap", "advdeployments": "AdvDeployment", "events": "Event", "leases": "Lease", "clusterprofiles": "ClusterProfile"}

// resource serves [namespaces ns] resource [name].
func (s *server) resource(w http.ResponseWriter, r *http.Request, path []string, apiVersion string) {
	namespace := ""
	if path[0] == "namespaces" {
		namespace, path = path[1], path[2:]
	}
	kind := kinds[path[0]]
	if len(path) == 1 {
		selector, _ := labels.Parse(r.URL.Query().Get("labelSelector"))
		match := func(key string, o object) bool {
			set := labels.Set{}
			marks, _ := o["metadata"].(object)["labels"].(object)
			for k, v := range marks {
				set[k] = fmt.Sprint(v)
			}
			return strings.HasPrefix(key, path[0]+"/"+namespace) && selector.Matches(set)
		}
		if r.Method == http.MethodPost && (kind == "Lease" || kind == "Secret" || kind == "Event") {
			s.create(w, r, path[0]+"/"+namespace+"/", kind, apiVersion)
			return
		}
		if r.URL.Query().Get("watch") != "" {
			s.watch(w, r, match, apiVersion, kind)
			return
		}
		s.list(w, match, apiVersion, kind)
		return
	}
	key := path[0] + "/" + namespace + "/" + path[1]
	s.mu.Lock()
	defer s.mu.Unlock()
	have, exists := s.objects[key]
	body := decode(r)
	switch r.Method {
	case http.MethodPatch:
		if s.readOnly {
			s.fail(w, 403)
			return
		}
		apply := strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch")
		meta, _ := body["metadata"].(object)
		wanted := meta["resourceVersion"]
		switch {
		case !exists && !apply:
			s.fail(w, 404)
			return
		case exists && wanted != nil && wanted != have["metadata"].(object)["resourceVersion"]:
			s.fail(w, 409)
			return
		case !exists:
			have = object{"metadata": object{"name": path[1], "namespace": namespace, "labels": object{}}}
		}
		delete(meta, "resourceVersion")
		have = clone(have)
		merge2(have, body)
		s.store(key, have)
		s.answer(w, s.typed(key, kind, apiVersion))
	case http.MethodPut:
		if meta := body["metadata"].(object); meta["resourceVersion"] != have["metadata"].(object)["resourceVersion"] {
			s.fail(w, 409)
			return
		}
		s.store(key, body)
		s.answer(w, s.typed(key, kind, apiVersion))
	case http.MethodDelete:
		p, _ := body["preconditions"].(object)
		switch meta, _ := have["metadata"].(object); {
		case !exists:
			s.fail(w, 404)
		case p["uid"] != meta["uid"], p["resourceVersion"] != nil && p["resourceVersion"] != meta["resourceVersion"]:
			s.fail(w, 409)
		default:
			s.store(key, nil)
			s.answer(w, object{"kind": "Status", "apiVersion": "v1", "status": "Success"})
		}
	default:
		if !exists {
			s.fail(w, 404)
			return
		}
		s.answer(w, s.typed(key, kind, apiVersion))
	}
}

// decode a body, which may be protobuf where the client knows the type.
func decode(r *http.Request) object {
	text, _ := io.ReadAll(r.Body)
	if r.Header.Get("Content-Type") == runtime.ContentTypeProtobuf {
		typed, _, err := scheme.Codecs.UniversalDeserializer().Decode(text, nil, nil)
		if err != nil {
			return nil
		}
		text, _ = json.Marshal(typed)
	}
	var body object
	_ = json.Unmarshal(text, &body)
	return body
}

// typed is an object as it is sent.
func (s *server) typed(key, kind, apiVersion string) object {
	o := clone(s.objects[key])
	o["kind"], o["apiVersion"] = kind, apiVersion
	return o
}

func (s *server) create(w http.ResponseWriter, r *http.Request, prefix, kind, apiVersion string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body := decode(r)
	key := prefix + body["metadata"].(object)["name"].(string)
	if _, exists := s.objects[key]; exists {
		s.fail(w, 409)
		return
	}
	s.store(key, body)
	s.answer(w, s.typed(key, kind, apiVersion))
}

func merge2(into, from object) {
	for key, value := range from {
		inner, isObject := value.(object)
		have, both := into[key].(object)
		if isObject && both {
			merge2(have, inner)
			continue
		}
		into[key] = value
	}
}

func (s *server) list(w http.ResponseWriter, match func(string, object) bool, apiVersion, kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := []any{}
	for key, o := range s.objects {
		if match(key, o) {
			items = append(items, o)
		}
	}
	s.answer(w, object{"kind": kind + "List", "apiVersion": apiVersion, "metadata": object{"resourceVersion": strconv.Itoa(s.version)}, "items": items})
}

func (s *server) watch(w http.ResponseWriter, r *http.Request, match func(string, object) bool, apiVersion, kind string) {
	if r.URL.Query().Get("sendInitialEvents") != "" {
		s.fail(w, 422) // as servers before 1.34
		return
	}
	since, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(200)
	w.(http.Flusher).Flush()
	for {
		s.mu.Lock()
		news, mute, code := s.news, s.mute, s.code
		var fresh []event
		for _, e := range s.events {
			if e.version > since && !mute {
				fresh = append(fresh, e)
				since = e.version
			}
		}
		s.mu.Unlock()
		if code != 0 {
			return
		}
		for _, e := range fresh {
			if e.key != "" && !match(e.key, e.object) {
				continue
			}
			o := clone(e.object)
			o["kind"], o["apiVersion"] = kind, apiVersion
			_ = json.NewEncoder(w).Encode(object{"type": e.kind, "object": o})
		}
		w.(http.Flusher).Flush()
		select {
		case <-news:
		case <-r.Context().Done():
			return
		}
	}
}
