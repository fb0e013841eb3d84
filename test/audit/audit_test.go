package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func line(stage, verb, agent, resource, subresource, name string, code int, at string) string {
	return fmt.Sprintf(`{"kind":"Event","stage":%q,"verb":%q,"user":{"username":"admin"},"userAgent":%q,`+
		`"objectRef":{"resource":%q,"subresource":%q,"namespace":"ns","name":%q},"responseStatus":{"code":%d},`+
		`"requestReceivedTimestamp":"2026-01-02T03:04:%sZ","stageTimestamp":"2026-01-02T03:04:10.5Z"}`+"\n",
		stage, verb, agent, resource, subresource, name, code, at)
}

func TestParse(t *testing.T) {
	log := line("RequestReceived", "create", "tapp/v1", "pods", "", "a-0", 0, "05.000000") +
		line("ResponseComplete", "create", "tapp/v1", "pods", "", "a-0", 201, "05.000000") + "\n" +
		line("ResponseComplete", "patch", "tapp/v1", "pods", "status", "a-0", 409, "05.250000") +
		`{"stage":"ResponseComplete","verb":"get","userAgent":"curl","responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-02T03:04:06Z"}`
	got, err := Parse(strings.NewReader(log))
	if err != nil || len(got) != 3 {
		t.Fatalf("got %d requests and error %v, want 3: a request counts once, an unfinished line counts", len(got), err)
	}
	want := Request{
		Verb: "patch", User: "admin", UserAgent: "tapp/v1", Resource: "pods", Subresource: "status", Namespace: "ns", Name: "a-0", Code: 409,
		Received: time.Date(2026, 1, 2, 3, 4, 5, 250e6, time.UTC), Answered: time.Date(2026, 1, 2, 3, 4, 10, 500e6, time.UTC),
	}
	if got[1] != want {
		t.Errorf("got %+v, want %+v", got[1], want)
	}
	if !got[0].IsWrite() || !got[1].IsWrite() || got[2].IsWrite() {
		t.Error("create and patch are writes, get is not")
	}
	if _, err := Parse(strings.NewReader("{}\n{broken\n")); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("got error %v, want one that names line 2", err)
	}
}

func TestSelectAndCount(t *testing.T) {
	var log strings.Builder
	for i := range 3 {
		log.WriteString(line("ResponseComplete", "create", "tapp/v1", "pods", "", fmt.Sprintf("a-%d", i), 201, "05.0"))
		log.WriteString(line("ResponseComplete", "patch", "tapp/v1", "pods", "status", fmt.Sprintf("a-%d", i), 200, "05.5"))
	}
	log.WriteString(line("ResponseComplete", "create", "kubectl/v1", "pods", "", "b-0", 201, "05.5"))
	all, err := Parse(strings.NewReader(log.String()))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		filters []Filter
		want    int
	}{
		"all":                       {nil, 7},
		"agent":                     {[]Filter{{Agent: "tapp/"}}, 6},
		"resource alone":            {[]Filter{{Resource: "pods"}}, 4},
		"subresource":               {[]Filter{{Resource: "pods", Subresource: "status"}}, 3},
		"resource and all of it":    {[]Filter{{Resource: "pods", Subresource: "*"}}, 7},
		"verbs":                     {[]Filter{{Verbs: []string{"create", "delete"}}}, 4},
		"two filters, both match":   {[]Filter{{Agent: "tapp/"}, {Verbs: []string{"create"}}}, 3},
		"two filters, no overlap":   {[]Filter{{Agent: "kubectl/"}, {Verbs: []string{"patch"}}}, 0},
		"a namespace without any":   {[]Filter{{Namespace: "other"}}, 0},
		"the namespace of them all": {[]Filter{{Namespace: "ns"}}, 7},
	} {
		if got := len(Select(all, c.filters...)); got != c.want {
			t.Errorf("%s: selects %d, want %d", name, got, c.want)
		}
	}
	byCode := Count(all, func(r Request) int { return r.Code })
	if byCode[201] != 4 || byCode[200] != 3 {
		t.Errorf("counts by code: %v", byCode)
	}
}

func TestBusiest(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 900e6, time.UTC)
	var requests []Request
	for _, ms := range []int{1400, 0, 200, 999, 1000} { // the window is 200..1000, across two seconds of the clock
		requests = append(requests, Request{Received: start.Add(time.Duration(ms) * time.Millisecond)})
	}
	most, at := Busiest(requests, time.Second)
	if most != 3 || !at.Equal(start) && !at.Equal(start.Add(200*time.Millisecond)) {
		t.Errorf("got %d from %v", most, at)
	}
	if most, _ := Busiest(nil, time.Second); most != 0 {
		t.Errorf("got %d of nothing", most)
	}
}

func TestFollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	write := func(s string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(s); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	entry := line("ResponseComplete", "create", "tapp/v1", "pods", "", "a-0", 201, "05.0")
	write(entry)
	log, err := Follow(path)
	if err != nil {
		t.Fatal(err)
	}
	read := func(want int) {
		t.Helper()
		got, err := log.Read()
		if err != nil || len(got) != want {
			t.Fatalf("got %d requests and error %v, want %d", len(got), err, want)
		}
	}
	read(0)
	write(entry + entry[:40])
	read(1)
	write(entry[40:] + entry)
	read(2)
	read(0)
	// The API server gives a full log another name, and begins a new one.
	write(entry)
	if err := os.Rename(path, strings.TrimSuffix(path, ".log")+"-2026-11-21T10-00-00.000.log"); err != nil {
		t.Fatal(err)
	}
	write(entry)
	read(2)
	write(entry)
	read(1)
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(strings.TrimSuffix(path, ".log") + "-2026-11-21T10-00-00.000.log"); err != nil {
		t.Fatal(err)
	}
	if _, err := log.Read(); err == nil {
		t.Error("a log that was cut must be an error")
	}
	if _, err := Follow(path + ".missing"); err == nil {
		t.Error("a missing log must be an error")
	}
}

// The API server may be in the midst of a line when it begins to be followed.
func TestFollowFromInsideALine(t *testing.T) {
	entry := line("ResponseComplete", "create", "tapp/v1", "pods", "", "a-0", 201, "05.0")
	for name, c := range map[string]struct {
		before string
		after  []string
		want   []int
	}{
		"an empty log":             {"", []string{entry}, []int{1}},
		"between two lines":        {entry, []string{"", entry}, []int{0, 1}},
		"within a line":            {entry + entry[:40], []string{entry[40:] + entry, entry}, []int{1, 1}},
		"the line ends later":      {entry[:40], []string{entry[40:60], entry[60:], entry}, []int{0, 0, 1}},
		"all but the newline":      {entry[:len(entry)-1], []string{"\n" + entry}, []int{1}},
		"the first byte of a line": {entry + entry[:1], []string{entry[1:] + entry}, []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.log")
			text := c.before
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			log, err := Follow(path)
			if err != nil {
				t.Fatal(err)
			}
			for i, more := range c.after {
				text += more
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				if got, err := log.Read(); err != nil || len(got) != c.want[i] {
					t.Errorf("read %d: got %d requests and error %v, want %d", i, len(got), err, c.want[i])
				}
			}
		})
	}
}
