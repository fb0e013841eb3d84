package rollout

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
)

func tell(w *world) string {
	w.compute()
	f := Preview(w.in)
	var lines []string
	for _, step := range f.Steps {
		switch {
		case step.Gate:
			lines = append(lines, step.Stage+" gate")
		case step.Soak > 0:
			lines = append(lines, step.Stage+" "+step.Soak.String())
		default:
			text := step.Stage
			for n, i := range step.Units {
				text += fmt.Sprintf(" %s=%s/%s", w.in.Units[i].Key, step.Contents[n], number(step.Grants[n]))
			}
			lines = append(lines, text)
		}
	}
	if f.Blocked != "" {
		lines = append(lines, "blocked: "+f.Blocked)
	}
	return strings.Join(lines, "\n")
}

// TestPreview: what is told ahead is what happens.
func TestPreview(t *testing.T) {
	s := Strategy{Staging: Staging{Order: colours, Confirm: true}, Soak: time.Minute, MaxUnavailable: new(intstr.FromInt32(1))}
	w := newWorld(t, s, "a/canary=1", "a/blue=2", "b/canary=1", "b/blue=2").install().ask("v2")
	const want = `canary a/canary=v2/1
canary b/canary=v2/1
canary 1m0s
canary gate
blue a/blue=v2/1
blue b/blue=v2/1
blue 1m0s`
	if got := tell(w); got != want {
		t.Errorf("%s", got)
	}
	w.cluster("b").Fresh, w.cluster("b").Ready = false, false
	if got := tell(w); got != "blocked: a/canary: the budget of 1 instances is used up, by 3" {
		t.Errorf("%s", got)
	}
	w = newWorld(t, Strategy{}, "a/x=1", "b/x=1")
	if got := tell(w); got != " a/x=v1/- b/x=v1/-" {
		t.Errorf("%q", got)
	}
	if got := tell(w.install()); got != "" {
		t.Errorf("%q", got)
	}
}

// BenchmarkCompute of 200 clusters with 20 units each.
func BenchmarkCompute(b *testing.B) {
	w := &world{contents: map[string]map[Key]string{}}
	w.in = Input{UID: "u", Generation: 1, Strategy: Strategy{Staging: Staging{Order: colours}, MaxUnavailable: new(intstr.FromString("5%"))}, Now: start}
	for c := range 200 {
		w.in.Clusters = append(w.in.Clusters, Cluster{Name: fmt.Sprint("c", c), Fresh: true, Ready: true})
		for u := range 20 {
			w.in.Units = append(w.in.Units, Unit{Key: Key{fmt.Sprint("c", c), fmt.Sprint("u", u)}, Group: colours[u%3], Replicas: 10, Target: "v2", Stable: "v1", Before: "v1",
				Sight: Sight{Has: "v1", Observed: true, Desired: 10, Current: 10, Updated: 10, Available: 10, Version: "1"}})
		}
	}
	w.in.HasStable = true
	w.in.Record = &Record{ID: "0-1", Stages: []StageRecord{}}
	for b.Loop() {
		if d := Compute(w.in); d.State != Staged {
			b.Fatal(d.State)
		}
	}
}
