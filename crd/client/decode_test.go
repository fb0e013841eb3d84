package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	restwatch "k8s.io/client-go/rest/watch"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// both are client-go's codecs of AdvDeployments, and those that expect them.
func both(t testing.TB) (known, expecting runtime.NegotiatedSerializer) {
	t.Helper()
	c, err := workload()
	if err != nil {
		t.Fatal(err)
	}
	return c.objects, expect(v1beta1.SchemeGroupVersion.WithKind(v1beta1.KindAdvDeployment), c)
}

const part = `{"apiVersion":"workload.dmall.com/v1beta1","kind":"AdvDeployment","metadata":{"name":"a","annotations":{"braces":"}\"}{\\"}},"spec":{"podSpec":{"deployType":"InPlaceSet"}}}`

const status = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old","reason":"Expired","code":410}`

// streams of watches. Whatever they are like, the objects and the end are those of client-go's codecs.
var streams = map[string]string{
	"nothing":              "",
	"events":               event("ADDED", part) + event("MODIFIED", part) + event("DELETED", part),
	"a bookmark":           event("BOOKMARK", `{"kind":"AdvDeployment","apiVersion":"workload.dmall.com/v1beta1","metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}`),
	"an error":             event("ADDED", part) + event("ERROR", status),
	"an error, expected":   event("ERROR", part),
	"a status as object":   event("ADDED", status),
	"another kind":         event("ADDED", `{"kind":"AppSet","apiVersion":"workload.dmall.com/v1beta1","metadata":{"name":"a"}}`) + event("ADDED", part),
	"an unknown kind":      event("ADDED", `{"kind":"Foo","apiVersion":"workload.dmall.com/v1beta1"}`),
	"no kind":              event("ADDED", `{"metadata":{"name":"a"}}`),
	"an unknown type":      event("RENAMED", part),
	"a type with a quote":  event(`ADD\"ED`, part),
	"a type in disguise":   event(`\u0041DDED`, part),
	"not an object":        event("ADDED", `[]`) + event("ADDED", `null`),
	"a wrong field":        event("ADDED", `{"kind":"AdvDeployment","apiVersion":"workload.dmall.com/v1beta1","metadata":{"name":7}}`),
	"another order":        `{"object":` + part + `,"type":"ADDED"}`,
	"more fields":          `{"type":"ADDED","object":` + part + `,"more":{}}`,
	"fields of other case": `{"Type":"ADDED","Object":` + part + `}`,
	"spaces":               "\n { \"type\" : \"ADDED\",\r\n\t\"object\" : " + part + " } \n\n" + `{"type":"ADDED","object":` + part + " }",
	"no lines":             strings.ReplaceAll(event("ADDED", part)+event("MODIFIED", part), "\n", ""),
	"a broken object":      event("ADDED", `{"kind":"AdvDeployment",}`),
	"a bracket too many":   `{"type":"ADDED","object":{}}}`,
	"a page of a proxy":    "<html>",
	"an end within":        event("ADDED", part) + `{"type":"ADDED","object":{"kind":`,
	"an end in a string":   `{"type":"ADD`,
	"large":                event("ADDED", strings.Replace(part, `"InPlaceSet"`, `"`+strings.Repeat(`{\"`, 1<<14)+`"`, 1)) + event("ADDED", part),
}

func event(kind, object string) string { return `{"type":"` + kind + `","object":` + object + "}\n" }

// watched is what a watch makes of a stream.
func watched(t testing.TB, codecs runtime.NegotiatedSerializer, stream io.Reader) (out []string, end error) {
	t.Helper()
	objects, events, framer, err := runtime.NewClientNegotiator(codecs, v1beta1.SchemeGroupVersion).StreamDecoder(runtime.ContentTypeJSON, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := restwatch.NewDecoder(streaming.NewDecoder(framer.NewFrameReader(io.NopCloser(stream)), events), objects)
	for {
		kind, object, err := d.Decode()
		if err != nil {
			return out, err
		}
		out = append(out, fmt.Sprintf("%s %T %s", kind, object, written(t, object)))
	}
}

func written(t testing.TB, o any) string {
	t.Helper()
	b, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestWatchIsDecodedAsByClientGo(t *testing.T) {
	known, expecting := both(t)
	broken := errors.New("connection lost")
	readers := map[string]func(io.Reader) io.Reader{
		"at once":        func(r io.Reader) io.Reader { return r },
		"byte by byte":   iotest.OneByteReader,
		"with its end":   iotest.DataErrReader,
		"half by half":   iotest.HalfReader,
		"and broken off": func(r io.Reader) io.Reader { return io.MultiReader(r, iotest.ErrReader(broken)) },
	}
	for name, stream := range streams {
		for how, reader := range readers {
			want, wantEnd := watched(t, known, reader(strings.NewReader(stream)))
			got, gotEnd := watched(t, expecting, reader(strings.NewReader(stream)))
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s, %s:\n%s\nwant\n%s", name, how, got, want)
			}
			for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, broken} { // all others are told of
				if errors.Is(gotEnd, end) != errors.Is(wantEnd, end) {
					t.Errorf("%s, %s: it ends by %v, want %v", name, how, gotEnd, wantEnd)
				}
			}
		}
	}
}

// TestEndlessEvent: what never ends is given up at the largest size that client-go takes, and not kept whole before.
func TestEndlessEvent(t *testing.T) {
	_, expecting := both(t)
	endless := io.MultiReader(strings.NewReader(`{"type":"`), endlessly{})
	if _, err := watched(t, expecting, endless); !errors.Is(err, streaming.ErrObjectTooLarge) {
		t.Errorf("it ends by %v", err)
	}
}

type endlessly struct{}

func (endlessly) Read(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte("a"), len(p))), nil }

func TestAnswersAreDecodedAsByClientGo(t *testing.T) {
	known, expecting := both(t)
	list := `{"apiVersion":"workload.dmall.com/v1beta1","kind":"AdvDeploymentList","metadata":{"resourceVersion":"7"},"items":[` + part + `]}`
	version := &schema.GroupVersionKind{Version: "v1"}
	for name, c := range map[string]struct {
		body     string
		defaults *schema.GroupVersionKind
		into     func() runtime.Object
	}{
		"an object":              {body: part, into: func() runtime.Object { return &v1beta1.AdvDeployment{} }},
		"a list":                 {body: list, into: func() runtime.Object { return &v1beta1.AdvDeploymentList{} }},
		"a scale":                {body: `{"kind":"Scale","apiVersion":"autoscaling/v1","spec":{"replicas":3}}`, into: func() runtime.Object { return &autoscalingv1.Scale{} }},
		"no kind":                {body: `{"metadata":{"name":"a"}}`, into: func() runtime.Object { return &v1beta1.AdvDeployment{} }},
		"a status":               {body: status, into: func() runtime.Object { return &v1beta1.AdvDeployment{} }},
		"a status, for a list":   {body: status, into: func() runtime.Object { return &v1beta1.AdvDeploymentList{} }},
		"a success, for a list":  {body: `{"kind":"Status","apiVersion":"v1","metadata":{"resourceVersion":"7"},"status":"Success"}`, into: func() runtime.Object { return &v1beta1.AdvDeploymentList{} }},
		"an object, for a list":  {body: part, into: func() runtime.Object { return &v1beta1.AdvDeploymentList{} }},
		"another version":        {body: strings.Replace(part, "v1beta1", "v9", 1), into: func() runtime.Object { return &v1beta1.AdvDeployment{} }},
		"an unregistered object": {body: part, into: func() runtime.Object { return &metav1.Table{} }},
		"raw":                    {body: part, into: func() runtime.Object { return &runtime.Unknown{} }},
		"nothing":                {body: "", into: func() runtime.Object { return &v1beta1.AdvDeployment{} }},
		"not JSON":               {body: "Forbidden", into: func() runtime.Object { return &v1beta1.AdvDeployment{} }},
		"half an object":         {body: part[:len(part)-9], into: func() runtime.Object { return &v1beta1.AdvDeployment{} }},
		"any":                    {body: part},
		"any, a list":            {body: list},
		"an error":               {body: status, defaults: version},
		"an error of old":        {body: `{"status":"Failure","code":410}`, defaults: version},
		"an error that is none":  {body: part, defaults: version},
	} {
		t.Run(name, func(t *testing.T) {
			decode := func(codecs runtime.NegotiatedSerializer) (told string, same bool) {
				d, err := runtime.NewClientNegotiator(codecs, v1beta1.SchemeGroupVersion).Decoder(runtime.ContentTypeJSON, nil)
				if err != nil {
					t.Fatal(err)
				}
				var into runtime.Object
				if c.into != nil {
					into = c.into()
				}
				o, kind, err := d.Decode([]byte(c.body), c.defaults, into)
				return fmt.Sprintf("%T %s, %v, %v; into: %s", o, written(t, o), kind, err, written(t, into)), o == into
			}
			want, wantSame := decode(known)
			got, gotSame := decode(expecting)
			if got != want || gotSame != wantSame {
				t.Errorf("got  %s, %v\nwant %s, %v", got, gotSame, want, wantSame)
			}
		})
	}
}

// TestWatchIsDecodedInOnePass: each pass over an event allocates, and there are fewer of them than by client-go's codecs.
func TestWatchIsDecodedInOnePass(t *testing.T) {
	known, expecting := both(t)
	stream := strings.Repeat(event("ADDED", part), 100)
	allocated := func(codecs runtime.NegotiatedSerializer) float64 {
		objects, events, framer, err := runtime.NewClientNegotiator(codecs, v1beta1.SchemeGroupVersion).StreamDecoder(runtime.ContentTypeJSON, nil)
		if err != nil {
			t.Fatal(err)
		}
		return testing.AllocsPerRun(10, func() {
			d := restwatch.NewDecoder(streaming.NewDecoder(framer.NewFrameReader(io.NopCloser(strings.NewReader(stream))), events), objects)
			for range 100 {
				if _, _, err := d.Decode(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	if was, is := allocated(known), allocated(expecting); is > 0.6*was {
		t.Errorf("%.0f allocations, and %.0f by client-go's codecs", is, was)
	}
}

func BenchmarkWatch(b *testing.B) {
	known, expecting := both(b)
	large := strings.Replace(part, `"InPlaceSet"`, `"`+strings.Repeat("x", 2500)+`"`, 1)
	stream := strings.Repeat(event("ADDED", large), 100)
	for name, codecs := range map[string]runtime.NegotiatedSerializer{"client-go": known, "expecting": expecting} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(stream)))
			for b.Loop() {
				objects, events, framer, _ := runtime.NewClientNegotiator(codecs, v1beta1.SchemeGroupVersion).StreamDecoder(runtime.ContentTypeJSON, nil)
				d := restwatch.NewDecoder(streaming.NewDecoder(framer.NewFrameReader(io.NopCloser(strings.NewReader(stream))), events), objects)
				for range 100 {
					if _, _, err := d.Decode(); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
