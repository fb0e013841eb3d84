package app

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"tkestack.io/tapp/controller/loop"
	appv1 "tkestack.io/tapp/crd/app/v1"
	"tkestack.io/tapp/crd/client"
	plan "tkestack.io/tapp/plan/app"
)

const (
	appPath    = "/apis/appcontroller.k8s.io/v1/namespaces/ns/apps/web"
	deployment = "/apis/apps/v1/namespaces/ns/deployments/web"
	service    = "/api/v1/namespaces/ns/services/web"
)

var key = loop.Key{Namespace: "ns", Name: "web"}

// stub answers requests in the place of an API server; what a real one does is tested in
// test/app.
type stub struct {
	answer func(method, path string) (int, any)
	mu     sync.Mutex
	asks   []string // "METHOD path"
}

func (s *stub) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.asks = append(s.asks, r.Method+" "+r.URL.Path)
	s.mu.Unlock()
	code, object := s.answer(r.Method, r.URL.Path)
	data, err := json.Marshal(object)
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(data)), Request: r}, err
}

// took are the requests since the last call.
func (s *stub) took() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.asks
	s.asks = nil
	return out
}

func newController(t *testing.T, s *stub, stored *appv1.App) *Controller {
	t.Helper()
	cfg := &rest.Config{Host: "http://stub", Transport: s, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}}
	core, err := corev1client.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	deployments, err := appsv1client.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	apps, err := client.NewApps(cfg)
	if err != nil {
		t.Fatal(err)
	}
	clients := Clients{Apps: apps, Deployments: deployments, Services: core}
	c, err := New(Options{Clients: clients, Watching: clients, Events: core, Workers: 1, Host: "host", Metrics: NewMetrics(prometheus.NewRegistry())})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.apps.GetStore().Add(stored); err != nil {
		t.Fatal(err)
	}
	return c
}

func web() *appv1.App {
	a := &appv1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "u", ResourceVersion: "10", Generation: 1}}
	a.Spec.DeploymentTemplate = appv1.DeploymentTemplate{Name: "web", Image: "nginx:1"}
	a.Spec.ServiceTemplate = appv1.ServiceTemplate{Name: "web", Port: 80}
	return a
}

func apiError(code int, reason metav1.StatusReason, message string) (int, any) {
	return code, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message}
}

func metaOf(version string, owned bool) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "c", ResourceVersion: version, Labels: map[string]string{appv1.LabelApp: "web"}}
	if owned {
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: appv1.SchemeGroupVersion.String(), Kind: appv1.Kind, Name: "web", UID: "u", Controller: new(true)}}
	}
	return m
}

// taken is what the API server has after it took both.
func taken(path string) (int, any) {
	if strings.Contains(path, "/deployments") {
		return 200, &appsv1.Deployment{TypeMeta: metav1.TypeMeta{Kind: "Deployment", APIVersion: "apps/v1"}, ObjectMeta: metaOf("50", true)}
	}
	return 200, &corev1.Service{TypeMeta: metav1.TypeMeta{Kind: "Service", APIVersion: "v1"}, ObjectMeta: metaOf("51", true)}
}

// TestSyncWrites: both children in order, and what each fault of a write leads to.
func TestSyncWrites(t *testing.T) {
	for name, c := range map[string]struct {
		code   int // of the answer to the Deployment; 0: it is taken
		reason metav1.StatusReason
		asks   []string // of children, as they begin
		err    string
	}{
		"all is well": {0, "", []string{"PATCH " + deployment, "PATCH " + service}, ""},
		"refused":     {403, metav1.StatusReasonForbidden, []string{"PATCH " + deployment, "PATCH " + service}, `Deployment "web" was refused: no`},
		"API is away": {503, metav1.StatusReasonServiceUnavailable, []string{"PATCH " + deployment}, `cannot create Deployment "web": no`},
		"a conflict":  {409, metav1.StatusReasonConflict, []string{"PATCH " + deployment, "GET " + deployment, "PATCH " + service}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &stub{answer: func(method, path string) (int, any) {
				switch {
				case strings.HasPrefix(path, appPath):
					return 200, web()
				case method == http.MethodPatch && path == deployment && c.code > 0:
					return apiError(c.code, c.reason, "no")
				}
				return taken(path)
			}}
			_, err := newController(t, s, web()).sync(t.Context(), key)
			if (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
				t.Errorf("got error %v, want %q", err, c.err)
			}
			asks := slices.DeleteFunc(s.took(), func(a string) bool { return strings.Contains(a, appPath) })
			if len(asks) < len(c.asks) || !slices.Equal(asks[:len(c.asks)], c.asks) {
				t.Errorf("asked %q, want %q at first", asks, c.asks)
			}
		})
	}
}

// TestStaleCaches: an App whose caches lack its last writes is left alone until they have
// them, and is planned on a live view when that takes too long.
func TestStaleCaches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stub{answer: func(method, path string) (int, any) {
			switch {
			case strings.HasPrefix(path, appPath):
				return 200, web()
			case method == http.MethodGet && !strings.HasSuffix(path, "/web"):
				return 200, &corev1.ServiceList{}
			}
			return taken(path)
		}}
		c := newController(t, s, web())
		if _, err := c.sync(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		s.took()
		result, err := c.sync(t.Context(), key)
		if asks := s.took(); result.After <= 0 || err != nil || len(asks) > 0 {
			t.Fatalf("got %+v, %v, and asked %q; want to wait", result, err, asks)
		}
		time.Sleep(result.After)
		if _, err := c.sync(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		if asks := s.took(); !slices.Contains(asks, "GET "+appPath) || !slices.Contains(asks, "GET "+deployment) {
			t.Errorf("asked %q, want a live view", asks)
		}
	})
}

// TestAdoption: a child is adopted only for an App that is still there.
func TestAdoption(t *testing.T) {
	other := web()
	other.UID = "other"
	for name, c := range map[string]struct {
		live any
		want []string
	}{
		"still there": {web(), []string{"GET " + appPath, "PATCH " + deployment}},
		"another one": {other, []string{"GET " + appPath, "GET " + deployment}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &stub{answer: func(_, path string) (int, any) {
				if path == appPath {
					return 200, c.live
				}
				return taken(path)
			}}
			controller := newController(t, s, web())
			v := newView(web())
			action := plan.Action{Op: plan.Adopt, Child: plan.Child{Kind: plan.Deployment, Name: "web"}, UID: "c", Version: "40",
				Manifest: map[string]any{"metadata": map[string]any{"name": "web"}}}
			var o object
			if err := controller.write(t.Context(), v, &o, action); (err == nil) != (name == "still there") {
				t.Errorf("got error %v", err)
			}
			if name != "still there" {
				_ = controller.look(t.Context(), v, action.Child)
			}
			if asks := s.took(); !slices.Equal(asks, c.want) {
				t.Errorf("asked %q, want %q", asks, c.want)
			}
			if got := o.guard.Written()[storeOf(plan.Deployment)]; (got == "50") != (name == "still there") {
				t.Errorf("the guard waits for %q", got)
			}
		})
	}
}

// TestCorrection: an apply that is refused because of what somebody else edited is tried
// again after that is put right, in one sync; a correction that is refused is not.
func TestCorrection(t *testing.T) {
	const edited = 81
	for name, c := range map[string]struct {
		corrects bool
		want     int // patches of the Service
		err      string
	}{
		"put right": {true, 3, ""},
		"refused":   {false, 2, `Service "web" was refused: no`},
	} {
		t.Run(name, func(t *testing.T) {
			patches, port := 0, int32(edited)
			now := func() *corev1.Service {
				return &corev1.Service{TypeMeta: metav1.TypeMeta{Kind: "Service", APIVersion: "v1"}, ObjectMeta: metaOf("51", true),
					Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: appv1.PortName, Port: port}}}}
			}
			s := &stub{answer: func(method, path string) (int, any) {
				switch {
				case strings.HasPrefix(path, appPath):
					return 200, web()
				case method != http.MethodPatch || path != service:
					return taken(path)
				}
				patches++
				switch {
				case patches == 2 && c.corrects:
					port = 80
				case port == edited:
					return apiError(422, metav1.StatusReasonInvalid, "no")
				}
				return 200, now()
			}}
			controller := newController(t, s, web())
			if err := controller.services.GetStore().Add(now()); err != nil {
				t.Fatal(err)
			}
			_, err := controller.sync(t.Context(), key)
			if (err == nil) != (c.err == "") || err != nil && err.Error() != c.err || patches != c.want {
				t.Errorf("got error %v after %d patches, want %q after %d", err, patches, c.err, c.want)
			}
		})
	}
}
