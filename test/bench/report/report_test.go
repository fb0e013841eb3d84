package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tkestack.io/tapp/test/bench/record"
)

// measured is a record in which all contenders did all phases with 1,000 pods, and
// TApp took twice as long as the limit to recreate them; 1,000 x 10 were created, of
// which the limit took 10 s alone and 12 s with the objects.
func measured() record.File {
	f := record.File{Machine: record.Machine{CPU: "a CPU", Cores: 2}, Micro: []record.Micro{
		{Name: "Rollout", Nanos: 3e7},
		{Name: "Compute/steady/10000", Nanos: 60e6}, {Name: "Child440KB", Nanos: 400e6}, {Name: "Record440KB", Nanos: 200e6}, {Name: "Install440KB", Nanos: 300e6},
		{Name: record.Start, Nanos: 30e6, Bytes: 60 << 20},
	}}
	for _, phase := range record.Phases() {
		for _, gate := range []bool{true, false} {
			for _, c := range []struct {
				contender string
				seconds   float64
				writes    map[string]int
				cpu       map[string]float64
			}{
				{record.Bare, 10, map[string]int{"create pods": 1000}, map[string]float64{controllerManager: 2}},
				{record.TApp, 11, map[string]int{"create pods": 1000, "patch pods/status": 500, "patch tapps/status": 7}, map[string]float64{record.TApp: 1.5}},
				{record.StatefulSet, 22, map[string]int{"create pods": 1000}, map[string]float64{controllerManager: 5}},
				{record.StatefulSetAlone, 22, map[string]int{"create pods": 1000}, map[string]float64{controllerManager: 3.75}},
			} {
				isSet := strings.HasPrefix(c.contender, record.StatefulSet)
				r := record.Run{Seconds: c.seconds, Writes: c.writes, CPU: c.cpu, Window: 10, Peak: 70 << 20, Empty: 50 << 20, BusiestStatus: 2}
				if c.contender == record.Bare {
					r.Client = 2.5
				}
				if phase == record.Recreate && c.contender == record.TApp {
					r.Seconds = 20
				}
				if phase == record.InPlace && gate && !isSet {
					r.Away = &record.Away{Median: c.seconds / 10, P99: 2, Most: 3}
				}
				if phase == record.Steady {
					r.Writes, r.CPU = nil, map[string]float64{controllerManager: 1}
				}
				r.Key = record.Key{Contender: c.contender, Phase: phase, Objects: 1, Instances: 1000, Gate: gate}
				if gate && isSet {
					continue
				}
				f.Add(r)
			}
		}
	}
	for contender, seconds := range map[string]float64{record.Bare: 10, record.BareObjects: 12, record.TApp: 13.2} {
		f.Add(record.Run{Seconds: seconds, Key: record.Key{Contender: contender, Phase: record.Create, Objects: 1000, Instances: 10}})
	}
	for contender, median := range map[string]float64{record.TApp: 0.0099, record.StatefulSet: 0.012} {
		f.Add(record.Run{Key: record.Key{Contender: contender, Phase: record.OneByOne, Objects: 1, Instances: 1000}, Answers: map[string]record.Answer{
			record.Ready: {Median: median, P99: 0.0299, Reaction: 0.004, Count: 99}, record.Asked: {Median: median, P99: 0.0301, Reaction: 0.004, Count: 41},
		}})
	}
	for _, m := range []record.Failover{
		{Contender: record.TApp, Killed: true, Spread: record.SpreadOf([]time.Duration{time.Minute})},
		{Contender: record.TApp, Killed: true, Spread: record.SpreadOf([]time.Duration{15 * time.Second, 17 * time.Second, 14 * time.Second}), Load: 1},
		{Contender: record.TApp, Spread: record.SpreadOf([]time.Duration{900 * time.Millisecond}), Load: 2},
		{Contender: record.StatefulSetAlone, Killed: true, Spread: record.SpreadOf([]time.Duration{16 * time.Second}), Load: 3},
	} {
		f.AddFailover(m)
	}
	for contender, boot := range map[string]string{record.Bare: "b", record.TApp: "b", record.StatefulSet: "another"} {
		f.Add(record.Run{Seconds: 9, Boot: boot, Key: record.Key{Contender: contender, Phase: record.Zero, Objects: 1000, Instances: 10}})
	}
	return f
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := Write(path("record.json"), path("page.md"), path("plots.json")); err == nil {
		t.Error("a page of nothing must be an error")
	}
	if err := measured().Save(path("record.json")); err != nil {
		t.Fatal(err)
	}
	if err := Write(path("record.json"), path("page.md"), path("plots.json")); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(path("page.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| create, gate: time beside the limit | 1.15x | 1.10x | reached |",
		"| create, no gate: pod writes for each pod | 1.02 | 1.500 | **missed** |",
		"| create, no gate, 1,000 TApps of 10: time beside the limit | 1.32x |",
		"| update in place, gate, 1,000 TApps of 10: time beside the limit | – |",
		"| create, no gate, 1,000 TApps of 10: time beside the limit with its objects | 1.15x | 1.10x | reached |",
		"| 1,000 x 10 | create | no gate | 10.0 s | 12.0 s | 13.2 s | 1.32 | 1.10 |",
		"| 1,000 x 10 | scale to zero | no gate | 9.00 s | 9.00 s | – | 1.00 | – |",
		"| restart at 10,000 instances, until all was worked on | 5 s | – | not measured |",
		"| a plan for 10,000 instances | 50 ms | 60 ms | **missed** |",
		"| a release of 440 KB: rendered in a child process, recorded, and planned until all is applied | 1 s | 0.90 s | reached |",
		"| memory of a process that only starts | 49.6 MB | 60.0 MB | **missed** |",
		"| fleet: a rollout in 200 clusters with 20 podSets each is planned | 20 ms | 30.0 ms | **missed** |",
		// 5 s, less 2 s of the other controllers: both have 1 s of idle time.
		"| 1,000 | create | no gate | 1.50 s | 3.00 s | 3.75 s | 5.00 s | 2.50 s |",
		"| CPU of the controller beside StatefulSet's controller alone, for the same pods | 1x | 0.40x | reached |",
		"| CPU of the controller beside StatefulSet's share, for the same pods | 0.50x |",
		"| 1,000 | update in place | no gate | 10.0 s | 11.0 s | 22.0 s (recreates) | 1.10 | 0.50 |",
		"| 1,000 | recreate | gate | 10.0 s | 20.0 s | 22.0 s | 2.00 | 0.91 |",
		"| 1,000 | create | gate | 1.000 | 1.500 | 1.000 | create 1.00, gate 0.50 | 7 | 2 | 0 | 0 |",
		"| 1,000 | update in place | 1.10 s | 2.00 s | 3.00 s | 1.00 s |",
		"| instance ready -> next one taken | TApp, no gate | 9.9 ms | 29.9 ms | 4.0 ms | 99 | reached |",
		"| instance ready -> next one taken | StatefulSet | 12.0 ms | 29.9 ms | 4.0 ms | 99 | – |",
		"| user's change -> first write | TApp, no gate | 9.9 ms | 30.1 ms | 4.0 ms | 41 | **missed** |",
		"| 1,000 | gate | 50 MB | 70 MB | create | 20.5 KB |",
		"| is killed | TApp | 14.0 s | 15.0 s | 17.0 s | 3 | 1.0 |\n| is killed | StatefulSet alone | 16.0 s | 16.0 s | 16.0 s | 1 | 3.0 |\n" +
			"| is told to end | TApp | 0.9 s | 0.9 s | 0.9 s | 1 | 2.0 |\n",
		"![1,000 instances](page/speed-1x1000.svg)",
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, unwanted := range []string{"1,000 TApps of 10: time beside the limit | 1.15x", "StatefulSet's share, for the same pods | 1x"} {
		if strings.Contains(string(page), unwanted) {
			t.Errorf("%q is information and has no goal", unwanted)
		}
	}
	if t.Failed() {
		t.Logf("%s", page)
	}
	data, err := os.ReadFile(path("plots.json"))
	if err != nil {
		t.Fatal(err)
	}
	var plots []plot
	if err := json.Unmarshal(data, &plots); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range plots {
		names = append(names, p.Name)
		if p.Name != "speed-1000x10" {
			continue
		}
		if got := fmt.Sprint(p.Groups, p.Series[1].Values, p.Series[2].Values); got != "[create scale to zero] [13.2 9] [0 0]" {
			t.Errorf("StatefulSet was measured on another machine: %s", got)
		}
	}
	if got := strings.Join(names, " "); got != "speed-1x1000 speed-1000x10 cpu" { // one size is no scale
		t.Errorf("plots: %s", got)
	}
}
