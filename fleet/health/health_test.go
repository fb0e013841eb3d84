package health

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return epoch.Add(time.Duration(seconds * float64(time.Second))) }

// step of a test: a probe that began and ended, a list, or time that passed.
type step struct {
	do         string // ok, fail, refuse, list, refuse-list, tick
	began, end float64
	want       State
	reason     string
}

func run(t *testing.T, m *Machine, steps []step) {
	t.Helper()
	for n, s := range steps {
		switch s.do {
		case "ok":
			m.Probed(at(s.began), at(s.end), Result{})
		case "fail":
			m.Probed(at(s.began), at(s.end), Result{Outcome: Silent, Reason: ReasonSilent, Message: "refused"})
		case "refuse":
			m.Probed(at(s.began), at(s.end), Result{Outcome: Refused, Reason: "Unauthorized"})
		case "list":
			m.Listed(at(s.end), Result{})
		case "refuse-list":
			m.Listed(at(s.end), Result{Outcome: Refused, Reason: "Forbidden"})
		case "silent-list":
			m.Listed(at(s.end), Result{Outcome: Silent, Reason: "nothing"})
		case "lost":
			m.Lost()
		default:
			m.Tick(at(s.end))
		}
		if got, reason, _ := m.State(at(s.end)); got != s.want || reason != s.reason {
			t.Fatalf("step %d, %+v: got %s %q", n, s, got, reason)
		}
	}
}

func TestMachine(t *testing.T) {
	ready := []step{{"ok", 0, 0, Connecting, ReasonReturning}, {"list", 0, 0, Ready, ""}}
	offline := append(ready[:2:2], step{"fail", 10, 13, Suspect, ReasonSilent}, step{"fail", 15, 18, Suspect, ReasonSilent},
		step{"fail", 20, 23, Suspect, ReasonSilent}, step{"tick", 25, 25, Offline, ReasonSilent})
	for name, steps := range map[string][]step{
		"not heard yet":                         {{"tick", 0, 0, Connecting, ReasonConnecting}, {"list", 0, 0, Connecting, ReasonConnecting}},
		"at first one success and a list do":    ready,
		"never heard":                           {{"fail", 0, 3, Connecting, ReasonSilent}, {"fail", 5, 8, Connecting, ReasonSilent}, {"fail", 10, 13, Connecting, ReasonSilent}, {"tick", 15, 15, Offline, ReasonSilent}},
		"one failure":                           append(ready[:2:2], step{"fail", 5, 8, Suspect, ReasonSilent}, step{"ok", 10, 10, Ready, ""}),
		"a silent list is the probes' to judge": append(ready[:2:2], step{"silent-list", 1, 1, Ready, ""}),
		"three failures, a moment too early":    append(offline[:5:5], step{"tick", 0, 24.999, Suspect, ReasonSilent}, step{"tick", 0, 25, Offline, ReasonSilent}),
		"time enough, and one failure too few":  append(ready[:2:2], step{"fail", 5, 8, Suspect, ReasonSilent}, step{"fail", 30, 33, Suspect, ReasonSilent}, step{"fail", 40, 43, Offline, ReasonSilent}),
		"a success between failures":            append(ready[:2:2], step{"fail", 5, 8, Suspect, ReasonSilent}, step{"fail", 10, 13, Suspect, ReasonSilent}, step{"ok", 15, 15, Ready, ""}, step{"fail", 20, 23, Suspect, ReasonSilent}, step{"tick", 0, 30, Suspect, ReasonSilent}),
		"back, but its caches have not listed":  append(offline[:6:6], step{"ok", 0, 30, Offline, ReasonReturning}, step{"ok", 0, 35, Offline, ReasonReturning}, step{"ok", 0, 45, Offline, ReasonReturning}, step{"list", 0, 46, Ready, ""}),
		"back, a moment too early":              append(offline[:6:6], step{"ok", 0, 30, Offline, ReasonReturning}, step{"list", 0, 30, Offline, ReasonReturning}, step{"ok", 0, 34, Offline, ReasonReturning}, step{"ok", 0, 39.999, Offline, ReasonReturning}, step{"tick", 0, 40, Ready, ""}),
		"back, one success too few":             append(offline[:6:6], step{"ok", 0, 30, Offline, ReasonReturning}, step{"list", 0, 30, Offline, ReasonReturning}, step{"ok", 0, 41, Offline, ReasonReturning}, step{"ok", 0, 42, Ready, ""}),
		"a failure on the way back":             append(offline[:6:6], step{"ok", 0, 30, Offline, ReasonReturning}, step{"list", 0, 30, Offline, ReasonReturning}, step{"fail", 0, 35, Offline, ReasonSilent}, step{"ok", 0, 36, Offline, ReasonReturning}, step{"ok", 0, 40, Offline, ReasonReturning}, step{"ok", 0, 45.999, Offline, ReasonReturning}, step{"ok", 0, 46, Ready, ""}),
		"an old list is none":                   append(ready[:2:2], step{"list", 0, 1, Ready, ""}, step{"fail", 10, 13, Suspect, ReasonSilent}, step{"fail", 15, 18, Suspect, ReasonSilent}, step{"fail", 22, 25, Offline, ReasonSilent}, step{"ok", 0, 30, Offline, ReasonReturning}, step{"ok", 0, 35, Offline, ReasonReturning}, step{"ok", 0, 40, Offline, ReasonReturning}),
		"credentials are revoked":               append(ready[:2:2], step{"refuse", 5, 5, Unfit, "Unauthorized"}, step{"tick", 0, 100, Unfit, "Unauthorized"}, step{"ok", 0, 101, Unfit, ReasonReturning}, step{"list", 0, 101, Unfit, ReasonReturning}, step{"ok", 0, 106, Unfit, ReasonReturning}, step{"ok", 0, 111, Ready, ""}),
		"rights are missing":                    {{"ok", 0, 0, Connecting, ReasonReturning}, {"refuse-list", 0, 0, Unfit, "Forbidden"}, {"ok", 0, 5, Unfit, ReasonReturning}, {"refuse-list", 0, 6, Unfit, "Forbidden"}},
		"unfit, and then silent":                append(ready[:2:2], step{"refuse", 5, 5, Unfit, "Unauthorized"}, step{"fail", 10, 13, Unfit, ReasonSilent}, step{"fail", 15, 18, Unfit, ReasonSilent}, step{"fail", 20, 25, Offline, ReasonSilent}),
		"somebody else was probed and listed":   append(ready[:2:2], step{"lost", 1, 1, Connecting, ReasonConnecting}, step{"ok", 5, 5, Connecting, ReasonReturning}, step{"list", 6, 6, Ready, ""}),
	} {
		t.Run(name, func(t *testing.T) { run(t, &Machine{}, steps) })
	}
}

// TestFlapping: three changes are borne within ten minutes; each one more doubles the time
// to Ready, up to five minutes, and they are forgotten after ten.
func TestFlapping(t *testing.T) {
	for changes, want := range map[int]time.Duration{0: 10 * time.Second, 3: 10 * time.Second, 4: 20 * time.Second, 5: 40 * time.Second, 8: 5 * time.Minute, 16: 5 * time.Minute} {
		m := &Machine{state: Offline}
		for range changes {
			m.changes = append(m.changes, at(0))
		}
		if got := readyAfter(m.flaps(at(1))); got != want {
			t.Errorf("%d changes: %s, want %s", changes, got, want)
		}
		if got := readyAfter(m.flaps(at(599.999))); got != want {
			t.Errorf("%d changes, almost ten minutes ago: %s, want %s", changes, got, want)
		}
		if got := m.flaps(at(600)); got != 0 {
			t.Errorf("%d changes are not forgotten", changes)
		}
	}
	m := &Machine{}
	blip := func(from float64, want State, reason string) []step {
		return []step{{"fail", from, from + 3, Suspect, ReasonSilent}, {"ok", from + 5, from + 5, want, reason}}
	}
	run(t, m, []step{{"ok", 0, 0, Connecting, ReasonReturning}, {"list", 0, 0, Ready, ""}})
	run(t, m, blip(10, Ready, ""))
	run(t, m, blip(20, Ready, "")) // the fourth change is the one to Ready
	run(t, m, blip(30, Suspect, ReasonFlapping))
	run(t, m, []step{{"ok", 40, 40, Suspect, ReasonFlapping}, {"ok", 45, 45, Suspect, ReasonFlapping}, {"tick", 0, 74.999, Suspect, ReasonFlapping}, {"tick", 0, 75, Ready, ""}})
	_, _, message := (&Machine{state: Offline, successes: 1, listed: at(0), changes: []time.Time{at(0), at(0), at(0), at(0)}}).State(at(1))
	if message != "it answers again, and has to do so for 20s" {
		t.Error(message)
	}
}

func TestFresh(t *testing.T) {
	for _, c := range []struct {
		state State
		asOf  time.Time
		now   time.Time
		want  bool
	}{
		{Ready, at(0), at(120), true},
		{Ready, at(0), at(120.001), false},
		{Ready, time.Time{}, at(0), false},
		{Suspect, at(0), at(120), true},
		{Suspect, at(0), at(120.001), false},
		{Offline, at(0), at(0), false},
		{Unfit, at(0), at(0), false},
		{Connecting, at(0), at(0), false},
	} {
		if got := Fresh(c.state, c.asOf, c.now); got != c.want {
			t.Errorf("%+v: got %v", c, got)
		}
	}
}

// TestProperties: whatever happens, Ready means that the last probe was answered and the
// caches listed since the member was lost; who was Offline is not Ready before three
// successes and ten seconds; nobody is Offline before three failures and fifteen seconds;
// and what Next foretells comes true.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, now := &Machine{}, epoch
		var failures, successes int
		var failing, succeeding time.Time
		listed, wasOffline := false, false
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			before, _, _ := m.State(now)
			began := now.Add(time.Duration(rapid.IntRange(0, 8000).Draw(t, "pause")) * time.Millisecond)
			now = began.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "takes")) * time.Millisecond)
			what := rapid.SampledFrom([]string{"ok", "ok", "ok", "fail", "fail", "refuse", "list", "lost", "tick"}).Draw(t, "what")
			switch what {
			case "ok":
				if successes == 0 {
					succeeding = now
				}
				successes++
				failures = 0
				m.Probed(began, now, Result{})
			case "fail":
				if failures == 0 {
					failing = began
				}
				failures++
				successes = 0
				m.Probed(began, now, Result{Outcome: Silent, Reason: ReasonSilent})
			case "refuse":
				failures, successes, listed, wasOffline = 0, 0, false, true
				m.Probed(began, now, Result{Outcome: Refused, Reason: "x"})
			case "list":
				listed = true
				m.Listed(now, Result{})
			case "lost":
				failures, successes, listed, wasOffline = 0, 0, false, false
				m.Lost()
			default:
				m.Tick(now)
			}
			got, _, _ := m.State(now)
			if got == Ready && (failures > 0 || successes == 0 || !listed) {
				t.Fatalf("Ready after %d failures, %d successes, listed %v", failures, successes, listed)
			}
			if got == Ready && wasOffline && (successes < ReadySuccesses || now.Sub(succeeding) < ReadyAfter) {
				t.Fatalf("Ready too early: %d successes, %s", successes, now.Sub(succeeding))
			}
			if got == Offline && before != Offline && (failures < OfflineFailures || now.Sub(failing) < OfflineAfter) {
				t.Fatalf("Offline too early: %d failures, %s", failures, now.Sub(failing))
			}
			if got != Offline && failures >= OfflineFailures && now.Sub(failing) >= OfflineAfter {
				t.Fatalf("%s, not Offline", got)
			}
			if got == Offline && before != Offline {
				listed, wasOffline = false, true
			}
			if got == Ready {
				wasOffline = false
			}
			if next := m.Next(now); !next.IsZero() {
				if !next.After(now) {
					t.Fatalf("%s: Next is now or earlier", got)
				}
				then := *m
				then.changes = append([]time.Time(nil), m.changes...)
				then.Tick(next)
				if after, _, _ := then.State(next); after == got {
					t.Fatalf("%s: Next changes nothing", got)
				}
			}
			if len(m.changes) > remembered {
				t.Fatalf("%d changes are remembered", len(m.changes))
			}
		}
	})
}

func TestStates(t *testing.T) {
	if got := fmt.Sprint(Connecting, Ready, Suspect, Offline, Unfit); got != "Connecting Ready Suspect Offline Unfit" {
		t.Error(got)
	}
}
