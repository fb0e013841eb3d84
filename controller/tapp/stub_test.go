package tapp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"tkestack.io/tapp/controller/loop"
	"tkestack.io/tapp/crd/client"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// stub answers requests in the place of an API server, to inject faults; what a
// real one does is tested in test/shell.
type stub struct {
	// answer returns the HTTP code and the object or Status. The path has a "?continue="
	// where a list is continued.
	answer func(method, path, body string) (int, any)

	mu   sync.Mutex
	asks []string // "METHOD path body"
}

func (s *stub) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	path := r.URL.Path
	if token := r.URL.Query().Get("continue"); token != "" {
		path += "?continue=" + token
	}
	asked := path
	if dry := r.URL.Query().Get("dryRun"); dry != "" {
		asked += "?dryRun=" + dry
	}
	s.mu.Lock()
	s.asks = append(s.asks, strings.TrimSpace(r.Method+" "+asked+" "+string(body)))
	s.mu.Unlock()
	code, object := s.answer(r.Method, path, string(body))
	if code == 0 {
		return nil, fmt.Errorf("connection refused")
	}
	data, err := json.Marshal(object)
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(data)), Request: r}, err
}

func (s *stub) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.asks...)
}

// writes are the requests that were no reads.
func (s *stub) writes() (out []string) {
	for _, a := range s.asked() {
		if !strings.HasPrefix(a, "GET ") {
			out = append(out, a)
		}
	}
	return out
}

// newController makes a controller that talks to the stub.
func (s *stub) newController(t *testing.T) *Controller {
	t.Helper()
	cfg := &rest.Config{Host: "http://stub", Transport: s, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}}
	core, err := corev1client.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	apps, err := appsv1client.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	tapps, err := client.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{TApps: tapps, Core: core, Apps: apps, Events: core, Workers: 1, NodesPerSync: nodesPerSync, Host: "host", Metrics: NewMetrics(prometheus.NewRegistry())}
	o.Watching.TApps, o.Watching.Core, o.Watching.Apps = tapps, core, apps
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// apiError is an API server's error.
func apiError(code int, reason metav1.StatusReason, message string, causes ...metav1.StatusCause) (int, any) {
	return code, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: message, Details: &metav1.StatusDetails{Causes: causes},
	}
}

func someTApp(name string) *tappv1.TApp {
	return &tappv1.TApp{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), Generation: 1, ResourceVersion: "10"}}
}

func somePod(name, uid, version string) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(uid), ResourceVersion: version,
			Labels: map[string]string{tappv1.LabelInstanceID: name[strings.LastIndex(name, "-")+1:], tappv1.LabelTemplateHash: "h"}},
	}
}

func ownedBy(pod *corev1.Pod, kind, name, uid string) *corev1.Pod {
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: kind, Name: name, UID: types.UID(uid), Controller: ptr.To(true)}}
	return pod
}

func keyOf(name string) loop.Key { return loop.Key{Namespace: "ns", Name: name} }
