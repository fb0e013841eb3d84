package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"tkestack.io/tapp/api/access"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
)

const (
	manyInstances = 10_000
	manyStreams   = 100
	manyRequests  = 25
	// mostMemory for them, above the process, in bytes.
	mostMemory = 64 << 20
)

// crowd is an API server with one TApp of many instances, whose pods it makes while it
// sends them. A real one that stores so many pods would take a minute.
type crowd struct {
	tapp *tappv1.TApp
	// moved is sent to watches: the number of a pod that becomes not ready.
	moved chan int
	// hangs: requests are taken and not answered, while the watches stay open. Those that wait
	// are told of.
	hangs atomic.Bool
	waits chan struct{}
}

func newCrowd(instances int) *crowd {
	t := &tappv1.TApp{TypeMeta: metav1.TypeMeta{APIVersion: tappv1.SchemeGroupVersion.String(), Kind: tappv1.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "big", UID: "u", ResourceVersion: "1", Generation: 1}}
	t.Spec.Replicas = new(int32(instances))
	t.Spec.Template.Labels = map[string]string{"app": "big"}
	t.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "main:1"}}
	return &crowd{tapp: t, moved: make(chan int), waits: make(chan struct{}, manyRequests)}
}

func (c *crowd) pod(id int, ready corev1.ConditionStatus, version int) *corev1.Pod {
	pod := plan.PodOf(c.tapp, tappv1.DefaultTemplateName, id)
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	pod.Namespace, pod.ResourceVersion = "ns", strconv.Itoa(version)
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(c.tapp, tappv1.GroupVersionKind())}
	pod.Spec.NodeName = "node-" + strconv.Itoa(id%100)
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}, {Type: tappv1.GateInPlaceUpdate, Status: corev1.ConditionTrue}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: "main", Image: "main:1", Ready: ready == corev1.ConditionTrue, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}
	return pod
}

func (c *crowd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c.hangs.Load() {
		if r.URL.Path != "/version" { // which is asked all the time
			select {
			case c.waits <- struct{}{}:
			case <-r.Context().Done():
			}
		}
		<-r.Context().Done()
		return
	}
	w.Header().Set("Content-Type", "application/json")
	tapps := r.URL.Path == "/apis/apps.tkestack.io/v1/namespaces/ns/tapps"
	switch q := r.URL.Query(); {
	case r.URL.Path == "/version":
		_, _ = io.WriteString(w, "{}")
	case q.Has("sendInitialEvents"): // as servers that do not stream lists
		w.WriteHeader(http.StatusUnprocessableEntity)
	case q.Has("watch"):
		w.(http.Flusher).Flush()
		for version := 2; !tapps; version++ {
			select {
			case id := <-c.moved:
				_ = json.NewEncoder(w).Encode(map[string]any{"type": "MODIFIED", "object": c.pod(id, corev1.ConditionFalse, version)})
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
		<-r.Context().Done()
	case tapps:
		_ = json.NewEncoder(w).Encode(tappv1.TAppList{TypeMeta: metav1.TypeMeta{APIVersion: "apps.tkestack.io/v1", Kind: "TAppList"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []tappv1.TApp{*c.tapp}})
	default:
		_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"PodList","metadata":{"resourceVersion":"1"},"items":[`)
		encoder := json.NewEncoder(w)
		for id := range int(*c.tapp.Spec.Replicas) {
			if id > 0 {
				_, _ = io.WriteString(w, ",")
			}
			_ = encoder.Encode(c.pod(id, corev1.ConditionTrue, 1))
		}
		_, _ = io.WriteString(w, "]}")
	}
}

// waitsFor tells when each of its marks has come, one after the other, and keeps nothing of
// what it reads.
type waitsFor struct {
	marks []string
	tail  []byte
	seen  chan string
}

func (w *waitsFor) Write(b []byte) (int, error) {
	w.tail = append(w.tail, b...)
	for len(w.marks) > 0 {
		at := bytes.Index(w.tail, []byte(w.marks[0]))
		if at < 0 {
			break
		}
		w.tail = w.tail[at+len(w.marks[0]):]
		w.seen <- w.marks[0]
		w.marks = w.marks[1:]
	}
	const most = 256
	w.tail = append([]byte(nil), w.tail[max(0, len(w.tail)-most):]...)
	return len(b), nil
}

// TestLoad: 10,000 instances on 100 streams cost less than 64 MB, a change reaches all of them,
// and nothing is left when all have gone. Nor do they cost more while the API server hangs and
// callers ask on.
func TestLoad(t *testing.T) {
	before := runtime.NumGoroutine()
	c := newCrowd(manyInstances)
	server := httptest.NewServer(c)
	a, err := New(t.Context(), Options{Config: &rest.Config{Host: server.URL}, Authenticator: access.Loopback{Token: "t"}, Authorizer: access.Loopback{},
		Limits: Limits{Linger: time.Millisecond, Pulse: 200 * time.Millisecond, Request: 2 * time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(a)
	ctx, leave := context.WithCancel(t.Context())
	empty := liveMemory()
	ask := func(path string) *http.Response {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, front.URL+"/api/v1/namespaces/ns/tapps/big/"+path, http.NoBody)
		if err != nil {
			t.Error(err)
			return nil
		}
		request.Header.Set("Authorization", "Bearer t")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Error(err)
			return nil
		}
		return response
	}
	var readers sync.WaitGroup
	const first, moved, away, back = "event: health", `"Pending":20`, `"degraded":"the API server cannot be asked`, "data: {}"
	streams := make([]*waitsFor, manyStreams)
	for i := range streams {
		s := &waitsFor{marks: []string{first, moved, away, back}, seen: make(chan string, 4)}
		streams[i] = s
		response := ask("instances?watch=1")
		if response == nil || response.StatusCode != http.StatusOK {
			t.Fatal(response)
		}
		readers.Go(func() {
			defer func() { _ = response.Body.Close() }()
			_, _ = io.Copy(s, response.Body)
		})
		<-s.seen
	}
	all := func() {
		for _, s := range streams {
			<-s.seen
		}
	}
	measure := func(what string) {
		t.Helper()
		used := liveMemory() - empty
		t.Logf("%d instances on %d streams use %d MB %s", manyInstances, manyStreams, used>>20, what)
		if used > mostMemory {
			t.Errorf("that is more than %d MB", mostMemory>>20)
		}
	}
	for id := range 20 {
		c.moved <- id
	}
	all()
	measure("after a change")
	c.hangs.Store(true)
	all()
	var asked sync.WaitGroup
	for range manyRequests {
		asked.Go(func() {
			if response := ask("history"); response != nil {
				if response.StatusCode != http.StatusServiceUnavailable {
					t.Errorf("what asks an API server that hangs gets %s", response.Status)
				}
				_ = response.Body.Close()
			}
		})
	}
	refused := make(chan struct{})
	go func() { asked.Wait(); close(refused) }()
	waiting := 0
	for end := false; !end && waiting < manyRequests; {
		select {
		case <-c.waits:
			waiting++
		case <-refused: // some had given up before others came
			end = true
		}
	}
	measure(fmt.Sprintf("while the API server hangs and %d requests wait for it", waiting))
	<-refused
	c.hangs.Store(false)
	all()
	measure("when it answers again")
	leave()
	readers.Wait()
	http.DefaultClient.CloseIdleConnections()
	front.Close()
	a.Close()
	server.CloseClientConnections()
	server.Close()
	if err := eventually(func() error {
		if now := runtime.NumGoroutine(); now > before+2 {
			return fmt.Errorf("%d goroutines are left of %d", now-before, now)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if n := a.streams.Count(); n != 0 {
		t.Errorf("%d streams are counted", n)
	}
}

// liveMemory is the heap that is in use, and the stacks.
func liveMemory() int64 {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// eventually asks until there is no error, for a minute.
func eventually(check func() error) error {
	end := time.Now().Add(time.Minute)
	for {
		err := check()
		if err == nil || time.Now().After(end) {
			return err
		}
		<-time.After(10 * time.Millisecond)
	}
}
