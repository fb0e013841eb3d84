//go:build cluster

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/audit"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/gen"
)

// TestThousandInstances counts what the controller asks of the API server to
// create a thousand instances and to update them all in place. The audit log has
// the figures; how long it takes is the benchmark's business.
func TestThousandInstances(t *testing.T) {
	t.Parallel()
	const n = 1000
	for name, c := range map[string]struct {
		drain          []gen.Option
		create, update float64 // writes a pod, at most
	}{
		"drained":   {nil, 2.02, 3.05},
		"undrained": {[]gen.Option{gen.NoDrain()}, 1.02, 1.05},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := namespace(t)
			log := follow(t)
			create(t, ns, gen.TApp("app", append(c.drain, gen.Replicas(n), gen.Default(gen.Simulated()), gen.MaxUnavailable("100%"))...))
			thousandReady(t, ns, n)
			writesOf(t, log, ns, "create").check(t, n, c.create)

			before := pods(t, ns)
			change(t, ns, "app", gen.Default(gen.Image("demo:v2")))
			thousandReady(t, ns, n)
			writesOf(t, log, ns, "update").check(t, n, c.update)
			after := pods(t, ns)
			sameUIDs(t, before, after)
			for _, p := range after {
				if restarts(p, "main") != 1 || image(p, "main") != "demo:v2" {
					t.Errorf("it should have been updated once: %s", cluster.PodLine(p))
				}
			}
		})
	}
}

func thousandReady(t *testing.T, ns string, n int32) {
	t.Helper()
	cluster.Within(t, 2*patience, fmt.Sprintf("%d instances are ready", n), func(ctx context.Context) error {
		return in(t, ns).Ready(ctx, "app")
	})
	if s := get(t, ns, "app").Status; s.ReadyReplicas != n || s.UpdatedReplicas != n || s.AvailableReplicas != n || s.AppStatus != tappv1.AppRunning {
		t.Errorf("status: %s", cluster.StatusOf(get(t, ns, "app")))
	}
}

// writes are the controller's writes in one phase, from its begin until nothing
// more was written for a while.
type writes struct {
	phase                string
	pods, status, events []audit.Request
	revisions            []audit.Request
	other                []audit.Request
	conflicts            []audit.Request
	reads                []audit.Request // of pods: mostly its caches answer
}

const (
	// settling tells the end of a phase: events are told of in batches, after the
	// last status.
	settling = 3 * time.Second
	// quiet is for how long nothing may be written then.
	quiet = 30 * time.Second
)

// writesOf gathers the writes of a phase that has come to its end, and fails when
// the controller then does not rest.
func writesOf(t *testing.T, log *audit.Log, ns, phase string) *writes {
	t.Helper()
	w := &writes{phase: phase}
	last := time.Now()
	gather := func() (audit.Request, bool) {
		var latest audit.Request
		for _, r := range ourRequests(t, log, ns) {
			if r.IsWrite() {
				w.add(r)
				last, latest = time.Now(), r
			} else if r.Resource == "pods" {
				w.reads = append(w.reads, r)
			}
		}
		return latest, latest.Verb != ""
	}
	cluster.Within(t, patience, "the last of it is told", func(context.Context) error {
		if r, wrote := gather(); wrote || time.Since(last) < settling {
			return fmt.Errorf("there was a write: %s", r)
		}
		return nil
	})
	cluster.Never(t, quiet, "nothing is written at rest", func(context.Context) error {
		if r, wrote := gather(); wrote {
			return fmt.Errorf("there was a write: %s", r)
		}
		return nil
	})
	return w
}

func (w *writes) add(r audit.Request) {
	switch {
	case r.Resource == "pods":
		w.pods = append(w.pods, r)
	case r.Resource == "tapps" && r.Subresource == "status":
		w.status = append(w.status, r)
	case r.Resource == "events":
		w.events = append(w.events, r)
	case r.Resource == "controllerrevisions":
		w.revisions = append(w.revisions, r)
	default:
		w.other = append(w.other, r)
	}
	if r.Code == 409 {
		w.conflicts = append(w.conflicts, r)
	}
}

func (w *writes) check(t *testing.T, instances int, most float64) {
	t.Helper()
	perPod := float64(len(w.pods)) / float64(instances)
	busiest, at := audit.Busiest(w.status, time.Second)
	t.Logf("%s: %.3f writes a pod, %d status writes (at most %d in a second), %d events, %d conflicts",
		w.phase, perPod, len(w.status), busiest, len(w.events), len(w.conflicts))
	if perPod > most {
		t.Errorf("%s: %.3f writes a pod, want at most %.2f: %v", w.phase, perPod, most, byKind(w.pods))
	}
	if busiest > 2 {
		t.Errorf("%s: %d status writes within a second from %s, want at most 2", w.phase, busiest, at)
	}
	if len(w.events) > 20 {
		t.Errorf("%s: %d events, want at most 20", w.phase, len(w.events))
	}
	if len(w.conflicts) > 0 {
		t.Errorf("%s: %d conflicts, the first: %s", w.phase, len(w.conflicts), w.conflicts[0])
	}
	if len(w.revisions) != 1 {
		t.Errorf("%s: %d writes of revisions, want 1, for the new version: %v", w.phase, len(w.revisions), w.revisions)
	}
	if len(w.reads) > instances/50 { // fault 18: pods were listed at every event
		t.Errorf("%s: %d reads of pods, want at most %d; the first: %s", w.phase, len(w.reads), instances/50, w.reads[0])
	}
	if len(w.other) > 0 {
		t.Errorf("%s: %d writes of other kinds, the first: %s", w.phase, len(w.other), w.other[0])
	}
}

func byKind(requests []audit.Request) map[string]int {
	return audit.Count(requests, func(r audit.Request) string {
		return fmt.Sprintf("%s %s/%s %d", r.Verb, r.Resource, r.Subresource, r.Code)
	})
}
