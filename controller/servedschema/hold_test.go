package servedschema

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

type thingSpec struct {
	Replicas *int              `json:"replicas,omitempty"`
	Ordinals *ordinals         `json:"ordinals,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Items    []item            `json:"items,omitempty"`
}

type ordinals struct {
	Start int `json:"start,omitempty"`
}

type item struct {
	Name string `json:"name,omitempty"`
	Port int    `json:"port,omitempty"`
}

type thing struct {
	metav1.ObjectMeta
	Spec thingSpec
}

func specOf(o metav1.Object) any { return &o.(*thing).Spec }

func someThing(generation int64, s thingSpec) *thing {
	return &thing{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "u", Generation: generation}, Spec: s}
}

// properties of the schema that is served: "ordinals.start" is a field start of ordinals.
var (
	complete = `{"replicas": {"type": "integer"}, "ordinals": {"properties": {"start": {"type": "integer"}}},
		"labels": {"additionalProperties": {"type": "string"}}, "items": {"items": {"properties": {"name": {"type": "string"}, "port": {"type": "integer"}}}}}`
	withoutOrdinals = strings.Replace(complete, `"ordinals": {"properties": {"start": {"type": "integer"}}},`, "", 1)
	withoutStart    = strings.Replace(complete, `"start": {"type": "integer"}`, "", 1)
	withoutPort     = strings.Replace(complete, `, "port": {"type": "integer"}`, "", 1)
)

// server is an API server that serves a schema and has a ConfigMap.
type server struct {
	mu     sync.Mutex
	schema string
	record []byte // base64
	// message of the kind while it is held
	message string
	writes  int
	reads   []string
	down    bool
}

// set what is served, and whether the server is away.
func (s *server) set(schema string, down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.schema, s.down = schema, down
}

// written counts the writes of the record.
func (s *server) written() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result(), nil
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	configMap := func() {
		data := ""
		if s.record != nil {
			data = `"things.example.com": "` + string(s.record) + `"`
		}
		fmt.Fprintf(w, `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": %q}, "binaryData": {%s}}`, tappv1.SchemasConfigMap, data)
	}
	switch {
	case s.down:
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.URL.Path == "/openapi/v3":
		fmt.Fprintf(w, `{"paths": {"apis/example.com/v1": {"serverRelativeURL": "/openapi/v3/apis/example.com/v1?hash=%d"}}}`, len(s.schema))
	case r.URL.Path == "/openapi/v3/apis/example.com/v1":
		s.reads = append(s.reads, "schema")
		fmt.Fprintf(w, `{"openapi": "3.0.0", "components": {"schemas": {"thing": {"properties": {"spec": {"properties": %s}},
			"x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Thing"}]}}}}`, s.schema)
	case r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/configmaps/"+tappv1.SchemasConfigMap):
		var body struct {
			BinaryData map[string]string `json:"binaryData"`
			Data       map[string]string `json:"data"`
		}
		text, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(text, &body)
		s.record, s.message = []byte(body.BinaryData["things.example.com"]), body.Data["things.example.com.held"]
		s.writes++
		configMap()
	case strings.HasSuffix(r.URL.Path, "/configmaps/"+tappv1.SchemasConfigMap):
		configMap()
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

const minute = time.Minute

// rig is a Hold of one object at an API server.
type rig struct {
	*Hold
	server *server
	object *thing
	told   []string
	// measured is the metric.
	measured float64
}

func newRig(t *testing.T, s *server, o *thing, accepted ...string) *rig {
	t.Helper()
	config := &rest.Config{Host: "http://server", Transport: s, QPS: -1}
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{server: s, object: o}
	r.Hold = New(Options{
		Kind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}, Resource: "things.example.com",
		REST: core.RESTClient(), ConfigMaps: core, Namespace: "tapp-system", FieldManager: "test", Interval: minute, Accepted: accepted,
		Objects: func() []metav1.Object { return []metav1.Object{r.stored(nil)} }, SpecOf: specOf,
		Tell: func(reason, message string) { r.told = append(r.told, reason+": "+message) }, Measure: func(held float64) { r.measured = held }, Clock: clock.RealClock{},
	})
	return r
}

// check compares, and fails unless the kind is held or not as wanted.
func (r *rig) check(t *testing.T, when string, wantHeld bool) {
	t.Helper()
	if err := r.Check(t.Context()); err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	if held := r.Held() != nil; held != wantHeld {
		t.Fatalf("%s: held %v, want %v: %+v, told %q", when, held, wantHeld, r.Held(), r.told)
	}
	if (r.measured == 1) != wantHeld {
		t.Errorf("%s: held %v, and the metric is %v", when, wantHeld, r.measured)
	}
	if told := r.server.message != ""; told != wantHeld {
		t.Errorf("%s: held %v, and the ConfigMap says %q", when, wantHeld, r.server.message)
	}
}

// stored is the object in the cache, or puts one there.
func (r *rig) stored(put *thing) *thing {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	if put != nil {
		r.object = put
	}
	return r.object
}

// comes is a watch event of the object.
func (r *rig) comes(o *thing) {
	r.Incoming(r.stored(nil), o)
	r.stored(o)
}

var (
	three = 3
	used  = thingSpec{Replicas: &three, Ordinals: &ordinals{Start: 5}, Labels: map[string]string{"a.b/c": "d"}, Items: []item{{Name: "x"}}}
	// pruned is what an API server without ordinals makes of used.
	pruned = thingSpec{Replicas: &three, Labels: map[string]string{"a.b/c": "d"}, Items: []item{{Name: "x"}}}
)

// TestServedSchema: a used field that the schema lost holds the kind, also under the next leader, until it is back.
func TestServedSchema(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{schema: complete}
		r := newRig(t, s, someThing(1, used))
		r.check(t, "complete", false)
		r.check(t, "complete again", false)
		if s.writes != 1 || len(s.reads) != 1 {
			t.Errorf("%d writes of the record and %d reads of the schema, want 1 each", s.writes, len(s.reads))
		}
		s.schema = withoutPort // which no object has
		r.check(t, "a field that nobody uses is gone", false)
		if want := "SchemaLostFields: the served schema of Thing lacks spec.items[].port, which no object has"; !slices.Equal(r.told, []string{want}) {
			t.Errorf("told %q", r.told)
		}
		s.schema = complete
		r.check(t, "and back", false)

		s.schema, r.told = withoutStart, nil
		r.check(t, "a used field is gone", true)
		digest := r.Held().Digest
		want := "nothing is done for any Thing: the schema that is served lacks spec.ordinals.start. The API server leaves out fields that objects use, and each write erases them. " +
			"Apply the CustomResourceDefinition things.example.com of this version of TApp, or accept the loss by --accept-schema=" + digest
		if got := r.Held().Message; got != want || !slices.Equal(r.told, []string{"SchemaLostFields: " + want}) {
			t.Errorf("message\n%s\nwant\n%s\ntold %q", got, want, r.told)
		}

		// The next leader has only ever seen what is left of the object.
		next := newRig(t, s, someThing(1, pruned))
		next.check(t, "the next leader", true)
		time.Sleep(2 * settles) // of the bubble
		next.check(t, "later", true)
		s.schema, next.object = complete, someThing(1, used)
		next.check(t, "the right schema", false)
		if last := next.told[len(next.told)-1]; !strings.HasPrefix(last, "SchemaComplete: ") {
			t.Errorf("told last %q", last)
		}
		newRig(t, s, someThing(1, used)).check(t, "the leader after that", false)

		s.schema = withoutStart
		newRig(t, s, someThing(1, pruned)).check(t, "gone again", true)
		s.schema = complete // and the caches still have what an API server left of the object
		late := newRig(t, s, someThing(1, pruned))
		late.check(t, "the leader after a change of the schema", true)
		late.object = someThing(1, used)
		time.Sleep(settles)
		late.check(t, "when the caches have followed", false)
		s.schema = withoutStart
		newRig(t, s, someThing(1, pruned)).check(t, "gone once more", true)
		newRig(t, s, someThing(1, pruned), digest).check(t, "accepted", false)
		newRig(t, s, someThing(1, pruned)).check(t, "after it was accepted", false)
	})
}

// TestObjectLosesFields: an object that lacks what it had holds the kind before the schema shows it.
func TestObjectLosesFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{schema: complete}
		r := newRig(t, s, someThing(1, used))
		r.check(t, "complete", false)
		r.comes(someThing(1, pruned))
		if h := r.Held(); h == nil || !strings.Contains(h.Message, "ns/web lost spec.ordinals, and nobody wrote it") {
			t.Fatalf("held: %+v", h)
		}
		r.check(t, "the schema is published later", true)
		s.schema = withoutOrdinals
		r.check(t, "the schema shows it", true)
		time.Sleep(2 * settles)
		s.schema = complete
		r.check(t, "the schema is back, the object not yet", true)
		r.comes(someThing(1, used))
		r.check(t, "both are back", false)

		r.comes(someThing(1, pruned))
		time.Sleep(2 * settles)
		r.check(t, "erased, while the schema is complete", true)
		r.comes(someThing(2, pruned))
		r.check(t, "written by a user since", false)
	})
}

// TestLostFields: what an object lost, and what is no loss.
func TestLostFields(t *testing.T) {
	five := 5
	for name, c := range map[string]struct {
		before, now *thing
		want        []string
	}{
		"the same":          {someThing(1, used), someThing(1, used), nil},
		"a field":           {someThing(1, used), someThing(1, pruned), []string{"ordinals"}},
		"a user's edit":     {someThing(1, used), someThing(2, pruned), nil},
		"a new default":     {someThing(1, pruned), someThing(1, used), nil},
		"another value":     {someThing(1, thingSpec{Replicas: &three}), someThing(1, thingSpec{Replicas: &five}), nil},
		"in a list":         {someThing(1, thingSpec{Items: []item{{"a", 1}, {"b", 2}}}), someThing(1, thingSpec{Items: []item{{"a", 0}, {"b", 0}}}), []string{"items[].port"}},
		"a key of a map":    {someThing(1, thingSpec{Labels: map[string]string{"x.y/z": "1"}}), someThing(1, thingSpec{}), []string{"labels"}},
		"of another object": {someThing(1, used), func() *thing { o := someThing(1, pruned); o.UID = types.UID("v"); return o }(), nil},
	} {
		if got := lostFields(c.before, c.now, specOf); !slices.Equal(got, c.want) {
			t.Errorf("%s: lost %q, want %q", name, got, c.want)
		}
	}
}

// TestSupervise: the controller works but for the time in which its kind is held, and an API
// server that is away holds it up only before it began.
func TestSupervise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{schema: complete, down: true}
		r := newRig(t, s, someThing(1, used))
		ctx, end := context.WithCancel(t.Context())
		var began, ended atomic.Int32
		var done sync.WaitGroup
		done.Go(func() {
			r.Supervise(ctx, ctx, func(ctx, _ context.Context) { began.Add(1); <-ctx.Done(); ended.Add(1) }, func(error) bool { return true })
		})
		expect := func(when string, wantBegan, wantEnded int32) {
			t.Helper()
			synctest.Wait()
			if began, ended := began.Load(), ended.Load(); began != wantBegan || ended != wantEnded {
				t.Fatalf("%s: began %d times and ended %d times, want %d and %d", when, began, ended, wantBegan, wantEnded)
			}
		}
		expect("the API server is away", 0, 0)
		s.set(complete, false)
		time.Sleep(retryInterval)
		expect("it answers", 1, 0)
		s.set(complete, true)
		time.Sleep(3 * minute)
		expect("it is away again", 1, 0)
		s.set(withoutOrdinals, false)
		time.Sleep(minute)
		expect("a field is gone", 1, 1)
		s.set(complete, false)
		time.Sleep(3 * minute)
		expect("it is back", 2, 1)
		writes := s.written()
		r.comes(someThing(1, pruned))
		expect("an object lost a field", 2, 2)
		if n := s.written() - writes; n != 1 {
			t.Errorf("%d writes of the record when the kind was held, want 1", n)
		}
		end()
		done.Wait()
	})
}

// TestGate: while a kind is held nothing is written, and reads go on.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{schema: complete}
		r := newRig(t, s, someThing(1, used))
		r.check(t, "complete", false)
		try := func(method string) error {
			request, err := http.NewRequestWithContext(t.Context(), method, "http://server/apis/example.com/v1/things/web", nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := r.Gate(s).RoundTrip(request)
			if err == nil {
				err = response.Body.Close()
			}
			return err
		}
		for _, held := range []bool{false, true} {
			for method, writes := range map[string]bool{"GET": false, "HEAD": false, "POST": true, "PUT": true, "PATCH": true, "DELETE": true} {
				if err := try(method); (err != nil) != (held && writes) || err != nil && !errors.Is(err, errHeld) {
					t.Errorf("held %v: %s ends with %v", held, method, err)
				}
			}
			r.comes(someThing(1, pruned))
		}
	})
}

// TestUnreadableRecord: what is no record holds nothing, and is replaced.
func TestUnreadableRecord(t *testing.T) {
	s := &server{schema: complete, record: []byte(base64.StdEncoding.EncodeToString([]byte("junk")))}
	r := newRig(t, s, someThing(1, used))
	r.check(t, "complete", false)
	if s.writes != 1 {
		t.Errorf("%d writes", s.writes)
	}
}
