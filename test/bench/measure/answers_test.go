package measure

import (
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"tkestack.io/tapp/test/audit"
	"tkestack.io/tapp/test/bench/record"
)

// The logs are of real updates of two instances and the begin of a third one, by TApp
// with the gate and by a StatefulSet.
func TestAnswers(t *testing.T) {
	for file, want := range map[string]map[string]record.Answer{
		"testdata/tapp.log": {
			record.Drained: {Median: 0.028182, P99: 0.028182, Reaction: 0.022175, Count: 2},
			record.Back:    {Median: 0.039560, P99: 0.039560, Reaction: 0.028376, Count: 2},
			record.Ready:   {Median: 0.029446, P99: 0.029446, Reaction: 0.023851, Count: 2},
			record.Asked:   {Median: 0.023315, P99: 0.023315, Reaction: 0.014194, Count: 1},
		},
		"testdata/statefulset.log": {
			record.Gone:  {Median: 0.007102, P99: 0.007102, Reaction: 0.003906, Count: 2},
			record.Ready: {Median: 0.007364, P99: 0.007364, Reaction: 0.003535, Count: 2},
			record.Asked: {Median: 0.004766, P99: 0.004766, Reaction: 0.002281, Count: 1},
		},
	} {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		requests, err := audit.Parse(f)
		_ = f.Close()
		if err != nil {
			t.Fatal(err)
		}
		got := answers(requests, Subject{
			Wrote: func(r audit.Request) bool {
				return strings.HasPrefix(r.UserAgent, "tapp/") || r.User == "system:serviceaccount:kube-system:statefulset-controller"
			},
			Asked: func(r audit.Request) bool { return strings.HasPrefix(r.UserAgent, "bench-user") },
		})
		for step, a := range got {
			a.Median, a.P99, a.Reaction = micros(a.Median), micros(a.P99), micros(a.Reaction)
			got[step] = a
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", file, got, want)
		}
	}
}

func micros(s float64) float64 { return math.Round(s*1e6) / 1e6 }

// An instance that is added and removed is nobody's next one, and what is left of an
// earlier wish is no answer to the next one.
func TestAnswersToEachWish(t *testing.T) {
	user := audit.Request{UserAgent: "user", Verb: "patch", Resource: "tapps", Name: "a"}
	pod := func(agent, verb, subresource, name string) audit.Request {
		return audit.Request{UserAgent: agent, Verb: verb, Resource: "pods", Subresource: subresource, Name: name}
	}
	refused := pod("ours", "patch", "", "a-0")
	refused.Code = 409
	var requests []audit.Request
	for _, r := range []audit.Request{
		at(0, user), at(3, refused), at(4, audit.Request{UserAgent: "ours", Verb: "create", Resource: "events"}),
		at(7, pod("ours", "create", "", "a-1")),
		at(60, pod("kwok/v0", "patch", "status", "a-1")), // its container runs
		at(70, pod("ours", "patch", "status", "a-1")),    // its gate is opened
		at(75, pod("kwok/v0", "patch", "status", "a-1")),
		at(1000, user), at(1009, pod("ours", "delete", "", "a-1")), at(1400, pod("kwok/v0", "delete", "", "a-1")),
		at(2000, user), at(2005, pod("ours", "create", "", "a-1")),
	} {
		r.Answered = r.Received
		requests = append(requests, r)
	}
	got := answers(requests, Subject{
		Wrote: func(r audit.Request) bool { return r.UserAgent == "ours" },
		Asked: func(r audit.Request) bool { return r.UserAgent == "user" },
	})
	want := map[string]record.Answer{record.Asked: {Median: 0.007, P99: 0.009, Reaction: 0.007, Count: 3}}
	for step, a := range got {
		a.Median, a.P99, a.Reaction = micros(a.Median), micros(a.P99), micros(a.Reaction)
		got[step] = a
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := answers(nil, Subject{}); got != nil {
		t.Errorf("got %+v of nothing", got)
	}
}
