package rollout

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// BenchmarkRollout of 200 clusters with 20 units each.
func BenchmarkRollout(b *testing.B) {
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
