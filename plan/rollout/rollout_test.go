package rollout

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
)

var colours = []string{"canary", "blue", "green"}

func fleetOf(s Strategy) []string {
	return []string{"a/canary=1", "a/blue=2", "a/green=2", "b/canary=1", "b/blue=2", "b/green=2"}
}

// TestStagesOf the fields of the source, and of stages.
func TestStagesOf(t *testing.T) {
	for name, c := range map[string]struct {
		staging Staging
		want    string
	}{
		"nothing":                {Staging{}, "rest: a/canary a/blue a/green b/canary b/blue b/green"},
		"order":                  {Staging{Order: colours}, "canary: a/canary b/canary; blue: a/blue b/blue; green: a/green b/green"},
		"one group":              {Staging{Order: []string{"blue"}}, "blue: a/blue b/blue; rest: a/canary a/green b/canary b/green"},
		"canary clusters":        {Staging{Canaries: []string{"b"}}, "canary: b/canary b/blue b/green; rest: a/canary a/blue a/green"},
		"canaries elsewhere":     {Staging{Order: colours, Canaries: []string{"b"}}, "canary: b/canary; blue: b/blue a/canary a/blue; green: b/green a/green"},
		"canaries unnamed":       {Staging{Order: []string{"blue", "green"}, Canaries: []string{"b"}}, "canary: b/canary b/blue b/green; blue: a/blue; green: a/green; rest: a/canary"},
		"stages":                 {Staging{Stages: []StageSpec{{Name: "one", Clusters: []string{"b"}, Groups: []string{"blue"}}, {Name: "two", Groups: []string{"blue", "green"}}}}, "one: b/blue; two: a/blue a/green b/green; rest: a/canary b/canary"},
		"selector":               {Staging{Stages: []StageSpec{{Name: "eu", Selector: "region=eu"}}}, "eu: b/canary b/blue b/green; rest: a/canary a/blue a/green"},
		"a stage without units":  {Staging{Stages: []StageSpec{{Name: "none", Groups: []string{"red"}}}}, "none:; rest: a/canary a/blue a/green b/canary b/blue b/green"},
		"a stage that is a rest": {Staging{Stages: []StageSpec{{Name: "rest", Clusters: []string{"a"}}}}, "rest: a/canary a/blue a/green; others: b/canary b/blue b/green"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Strategy{}, fleetOf(Strategy{})...)
			w.cluster("b").Labels = map[string]string{"region": "eu"}
			var got []string
			for _, stage := range stagesOf(&Strategy{}, &Record{Staging: c.staging}, w.in.Clusters, w.in.Units) {
				text := stage.Name + ":"
				for _, i := range stage.Units {
					text += " " + w.in.Units[i].String()
				}
				got = append(got, text)
			}
			if text := strings.Join(got, "; "); text != c.want {
				t.Errorf("got  %s\nwant %s", text, c.want)
			}
		})
	}
}

// TestColours: canary, confirm, blue, confirm, green; one cluster after the other.
func TestColours(t *testing.T) {
	s := Strategy{Staging: Staging{Order: colours, Confirm: true}}
	w := newWorld(t, s, fleetOf(s)...).install().ask("v2").settle()
	w.expect(Staged, "a/canary v2 -")
	w.work().settle().expect(Staged, "b/canary v2 -")
	w.work().settle().expect(Waiting)
	w.settle().expect(Waiting)
	w.confirm().settle().expect(Staged, "a/blue v2 -")
	w.work().settle().expect(Staged, "b/blue v2 -")
	w.work().settle().expect(Waiting)
	w.confirm().settle().expect(Staged, "a/green v2 -")
	w.work().settle().expect(Staged, "b/green v2 -")
	w.work().settle().expect(Done)
	if by := w.in.Record.Stages[0].ConfirmedBy; by != "ann" {
		t.Errorf("confirmed by %q", by)
	}
}

// TestPlatform: a user that edits podSet after podSet has one stage with work each time.
func TestPlatform(t *testing.T) {
	s := Strategy{Staging: Staging{Order: colours, Confirm: true}}
	w := newWorld(t, s, fleetOf(s)...).install()
	for _, group := range colours {
		w.ask("v2", group).settle().expect(Staged, "a/"+group+" v2 -")
		w.work().settle().expect(Staged, "b/"+group+" v2 -")
		w.work().settle().expect(Done)
	}
}

// TestConfirmations that open nothing.
func TestConfirmations(t *testing.T) {
	s := Strategy{Staging: Staging{Order: colours, Confirm: true}, Concurrent: new(intstr.FromInt32(9))}
	waiting := func(t *testing.T) *world {
		w := newWorld(t, s, fleetOf(s)...).install().ask("v2").settle().work().settle()
		w.wrote = nil
		return w.expect(Waiting)
	}
	for name, spoil := range map[string]func(*world){
		"none":          func(*world) {},
		"other stage":   func(w *world) { w.confirm().in.Confirmations[0].Stage = "blue" },
		"other token":   func(w *world) { w.confirm().in.Confirmations[0].Token = "0" },
		"other rollout": func(w *world) { w.confirm().in.Confirmations[0].Rollout = "0-1" },
		"of the last rollout of the same content": func(w *world) {
			w.confirm().later(time.Second).ask("v1").settle().work().settle()
			w.wrote = nil
			w.ask("v2").settle().work().settle()
			w.wrote = nil
		},
		"lowered afterwards": func(w *world) { w.in.Strategy.Confirm = false },
		"regrouped":          func(w *world) { w.in.Strategy.Order = nil },
		"a canary that broke": func(w *world) {
			w.confirm().unit("a/canary").Available = 0
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := waiting(t)
			spoil(w)
			w.settle()
			if len(w.wrote) > 0 || w.last.Current != 0 {
				t.Errorf("%s: wrote %q", w.last.State, w.wrote)
			}
		})
	}
	w := waiting(t)
	first := w.last.Record.ID
	w.ask("v1").settle().work().settle()
	w.wrote = nil
	if w.ask("v2").settle(); w.last.Record.ID == first {
		t.Error("an id was used again")
	}
}

// TestReturning: back to what is stable, all at once, without gates.
func TestReturning(t *testing.T) {
	s := Strategy{Staging: Staging{Order: colours, Confirm: true}}
	w := newWorld(t, s, fleetOf(s)...).install().ask("v2").settle().work().settle()
	w.wrote = nil
	w.ask("v1").settle().expect(Returning, "a/canary v1 -", "b/canary v1 -")
	w.work().settle().expect(Done)
}

// TestSilence: a silent cluster fails its stage by time, with maxFailures it is passed, and
// it is brought up when it is back.
func TestSilence(t *testing.T) {
	for failures, state := range map[int32]State{0: Halted, 1: Staged} {
		s := Strategy{Deadline: time.Minute, MaxFailures: new(intstr.FromInt32(failures))}
		w := newWorld(t, s, "a/x=1", "b/x=1").install().ask("v2")
		w.cluster("a").Fresh, w.cluster("a").Ready = false, false
		w.settle().later(59 * time.Second).settle()
		if w.last.State != Staged || len(w.wrote) > 0 {
			t.Fatalf("%s %q", w.last.State, w.wrote)
		}
		w.later(time.Second).settle()
		if state == Halted {
			w.expect(Halted)
			continue
		}
		w.expect(state, "b/x v2 -")
		w.work().settle().expect(Done)
		if want := []Key{{"a", "x"}}; !slices.Equal(w.in.Record.Passed, want) {
			t.Errorf("passed %v", w.in.Record.Passed)
		}
		w.cluster("a").Fresh, w.cluster("a").Ready = true, true
		w.settle().expect(Done, "a/x v2 -")
	}
}

// TestMaintaining: such a cluster is passed at once, and brought up later.
func TestMaintaining(t *testing.T) {
	w := newWorld(t, Strategy{}, "a/x=1", "b/x=1").install().ask("v2")
	*w.cluster("a") = Cluster{Name: "a", Maintaining: true}
	w.settle().expect(Staged, "b/x v2 -")
	w.work().settle().expect(Done)
	*w.cluster("a") = Cluster{Name: "a", Fresh: true, Ready: true}
	w.settle().expect(Done, "a/x v2 -")
}

// TestSoak: a stage has to stay well.
func TestSoak(t *testing.T) {
	s := Strategy{Staging: Staging{Order: colours}, Soak: time.Minute}
	w := newWorld(t, s, "a/canary=1", "a/blue=2")
	w.settle().work().settle()
	w.wrote = nil
	w.ask("v2").settle().expect(Staged, "a/canary v2 -")
	w.work().settle().expect(Staged)
	if w.last.Wait != time.Minute {
		t.Errorf("wait %s", w.last.Wait)
	}
	w.later(30 * time.Second).unit("a/canary").Available = 0
	w.settle().expect(Staged)
	w.work().settle().later(40 * time.Second).settle().expect(Staged)
	w.later(20*time.Second).settle().expect(Staged, "a/blue v2 -")
}

// TestPaused: nothing starts, and the clock stands.
func TestPaused(t *testing.T) {
	w := newWorld(t, Strategy{Deadline: time.Minute}, "a/x=2", "b/x=2").install().ask("v2").settle().expect(Staged, "a/x v2 -")
	w.in.Strategy.Paused = true
	w.later(time.Hour).settle().expect(Staged)
	w.work().settle().expect(Staged)
	w.in.Strategy.Paused = false
	w.settle().expect(Staged, "b/x v2 -")
}

// TestEarlierRollout: units that an abandoned rollout changed return to the stable content
// until their stage is reached.
func TestEarlierRollout(t *testing.T) {
	s := Strategy{Staging: Staging{Order: colours}, Concurrent: new(intstr.FromInt32(9))}
	w := newWorld(t, s, "a/canary=1", "a/blue=2", "a/green=2").install().ask("v2").settle().work().settle()
	w.wrote = nil
	w.ask("v3").settle().expect(Staged, "a/canary v3 -", "a/blue v1 -")
}

// TestUnknown: without a record, nothing changes while a cluster that may have some of it is
// not seen: what the others have may be in the midst of a change.
func TestUnknown(t *testing.T) {
	w := newWorld(t, Strategy{Staging: Staging{Order: colours, Confirm: true}}, "a/canary=1", "b/blue=2", "c/blue=1").install()
	w.in.Record = nil
	w.unit("b/blue").Sight = Sight{Unseen: true}
	w.unit("c/blue").Sight = Sight{}
	w.cluster("b").Fresh, w.cluster("b").Ready = false, false
	w.ask("v2").settle().expect(Unknown)
	const why = "no record tells what is stable, and cluster b, which may have some of it, was not seen yet"
	d := w.compute()
	if d.Why != why || d.Store || d.Stable || !d.Record.Equal(&Record{}) || d.Units[0].Content != "v1" || d.Units[1].Content != "" || d.Units[2].Content != "" {
		t.Errorf("%+v", d)
	}
}
