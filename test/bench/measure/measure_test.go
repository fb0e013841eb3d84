package measure

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"tkestack.io/tapp/test/audit"
	"tkestack.io/tapp/test/bench/record"
)

// at is a request so many milliseconds after the first one.
func at(ms int, r audit.Request) audit.Request {
	r.Received = time.Unix(1000, 0).Add(time.Duration(ms) * time.Millisecond)
	if r.Code == 0 {
		r.Code = 200
	}
	return r
}

func TestCount(t *testing.T) {
	user := audit.Request{UserAgent: "user", Verb: "patch", Resource: "tapps", Name: "a"}
	status := audit.Request{UserAgent: "ours", Verb: "patch", Resource: "tapps", Subresource: "status", Name: "a"}
	gate := audit.Request{UserAgent: "ours", Verb: "patch", Resource: "pods", Subresource: "status", Name: "a-0"}
	image := audit.Request{UserAgent: "ours", Verb: "patch", Resource: "pods", Name: "a-0"}
	late := image
	late.Code = 409
	var r record.Run
	count(&r, []audit.Request{
		at(50, user), at(0, user), at(40, gate), at(30, image), at(20, late),
		at(1000, status), at(1900, status), at(2100, status),
		at(1540, gate), at(540, gate),
		at(5, audit.Request{UserAgent: "ours", Verb: "get", Resource: "pods", Name: "a-0"}),
		at(6, audit.Request{UserAgent: "theirs", Verb: "delete", Resource: "pods", Name: "a-0"}),
	}, Subject{
		Wrote: func(r audit.Request) bool { return r.UserAgent == "ours" },
		Asked: func(r audit.Request) bool { return r.UserAgent == "user" },
	})
	want := record.Run{
		FirstWrite: 0.02, LastWrite: 2.1, Conflicts: 1, BusiestStatus: 2,
		Writes: map[string]int{"patch pods": 2, "patch pods/status": 3, "patch tapps/status": 3},
		Away:   &record.Away{Median: 1.5, P99: 1.5, Most: 1.5},
	}
	if !reflect.DeepEqual(r, want) {
		t.Errorf("got %+v, want %+v", r, want)
	}
}

func TestKubelet(t *testing.T) {
	bind := audit.Request{Verb: "create", Resource: "pods", Subresource: "binding", Name: "a-0"}
	image := audit.Request{Verb: "patch", Resource: "pods", Name: "a-0"}
	answer := audit.Request{UserAgent: "kwok/v0", Verb: "patch", Resource: "pods", Subresource: "status", Name: "a-0"}
	if k := kubelet([]audit.Request{at(0, bind), at(60, answer)}); k != nil {
		t.Errorf("one answer has no rate: %+v", k)
	}
	got := kubelet([]audit.Request{at(0, bind), at(60, answer), at(1000, image), at(2060, answer), at(1060, answer)})
	if want := (record.Kubelet{Median: 0.06, P99: 0.06, Rate: 1}); got == nil || *got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestCounters(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`# TYPE apiserver_request_body_size_bytes histogram
apiserver_request_body_size_bytes_count{group="apps.tkestack.io",resource="tapps",verb="patch"} 3
apiserver_request_body_size_bytes_sum{group="apps.tkestack.io",resource="tapps",verb="patch"} 1.5e+03
apiserver_request_body_size_bytes_sum{group="",resource="pods",verb="patch"} 20
apiserver_terminated_watchers_total{group="",resource="pods"} 5
apiserver_terminated_watchers_total{group="",resource="nodes"} 2
`))
	}))
	defer server.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	got, err := readCounters(t.Context(), client.CoreV1().RESTClient())
	if want := (counters{Sizes{"patch tapps": 1500, "patch pods": 20}, 7}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v and error %v, want %v", got, err, want)
	}
	if added := got.sizes.since(Sizes{"patch tapps": 1000, "patch pods": 20}); !reflect.DeepEqual(added, Sizes{"patch tapps": 500}) {
		t.Errorf("got %v", added)
	}
}

func TestUsage(t *testing.T) {
	if err := ResetPeak(os.Getpid()); err != nil {
		t.Fatal(err)
	}
	u, err := UsageOf(os.Getpid())
	if err != nil || u.Resident == 0 || u.Peak < u.Resident/2 {
		t.Errorf("got %+v and error %v", u, err)
	}
	if _, err := UsageOf(0); err == nil {
		t.Error("a process that does not exist must be an error")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	found, err := find(filepath.Dir(os.Args[0]), filepath.Base(self))
	if err != nil || found[filepath.Base(self)] != os.Getpid() {
		t.Errorf("this process is not among %v; error %v", found, err)
	}
}

func TestMicro(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bench")
	const text = "goos: linux\nBenchmarkCompute/steady/100-2   \t 100\t 11000 ns/op\t 110.0 ns/pod\t 2048 B/op\t  40 allocs/op\nPASS\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Micro(path)
	if want := []record.Micro{{Name: "Compute/steady/100", Nanos: 11000, Bytes: 2048, Allocs: 40}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v and error %v, want %v", got, err, want)
	}
}

// A process that only starts has some memory, and one that fails is no measurement.
func TestStart(t *testing.T) {
	got, err := Start(t.Context(), "/bin/true")
	if err != nil || got.Name != record.Start || got.Bytes <= 0 || got.Nanos <= 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := Start(t.Context(), "/bin/false"); err == nil {
		t.Error("a process that fails is no error")
	}
}
