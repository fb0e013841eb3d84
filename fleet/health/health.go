// Package health says how a member is, from what its probes and lists said. It is pure:
// times are input. A member that is lost for a moment is Suspect, one that is lost for
// long Offline, and what was Offline has to prove itself before it is Ready again.
package health

import (
	"fmt"
	"time"
)

// Figures of the machine.
const (
	// OfflineFailures in a row, and OfflineAfter the first of them began, make a member
	// Offline.
	OfflineFailures = 3
	OfflineAfter    = 15 * time.Second
	// ReadySuccesses in a row, and ReadyAfter the first of them ended, make it Ready again.
	ReadySuccesses = 3
	ReadyAfter     = 10 * time.Second
	// FlapChanges of the state within FlapWithin are borne; each one more doubles the time
	// to Ready, up to FlapMax.
	FlapChanges = 3
	FlapWithin  = 10 * time.Minute
	FlapMax     = 5 * time.Minute
	// FreshWithin is how old evidence of the caches may be.
	FreshWithin = 2 * time.Minute
	// remembered changes: beyond, the time to Ready is FlapMax anyway.
	remembered = 16
)

// State of a member.
type State int

// States. A machine begins with Connecting, which one success and a list end: a
// controller that starts need not wait for members that are well.
const (
	Connecting State = iota
	Ready
	Suspect
	Offline
	Unfit
)

func (s State) String() string {
	return [...]string{"Connecting", "Ready", "Suspect", "Offline", "Unfit"}[s]
}

// Outcome of a probe or a list.
type Outcome int

// Outcomes.
const (
	// Answered as it should.
	Answered Outcome = iota
	// Silent: no answer, or that of a server which cannot serve.
	Silent
	// Refused: the server is alive, but not ours to use.
	Refused
)

// Result of a probe or a list.
type Result struct {
	Outcome Outcome
	// Reason and Message say why it is not Answered.
	Reason, Message string
}

// Reasons of states.
const (
	ReasonConnecting = "Connecting"
	ReasonSilent     = "Silent"
	ReasonReturning  = "Returning"
	ReasonFlapping   = "Flapping"
)

// Machine is the health of one member. The zero value is Connecting.
type Machine struct {
	state State
	// failures and successes in a row, and when the first of them began or ended.
	failures, successes int
	failing, succeeding time.Time
	// last is the last result that was not Answered.
	last Result
	// listed is when the caches last listed; zero: not since the member was lost.
	listed time.Time
	// dropped is when what they listed was last given up.
	dropped time.Time
	changes []time.Time
}

// Probed takes the result of a probe.
func (m *Machine) Probed(began, ended time.Time, r Result) {
	switch r.Outcome {
	case Answered:
		if m.successes == 0 {
			m.succeeding = ended
		}
		m.successes++
		m.failures = 0
	case Refused:
		m.refuse(ended, r)
	default:
		if m.failures == 0 {
			m.failing = began
		}
		m.failures++
		m.successes = 0
		m.last = r
	}
	m.Tick(ended)
}

// Listed takes the result of a list or of the beginning of a watch. Silence there is the
// probes' to judge.
func (m *Machine) Listed(at time.Time, r Result) {
	switch r.Outcome {
	case Answered:
		m.listed = at
	case Refused:
		m.refuse(at, r)
	}
	m.Tick(at)
}

// Lost begins anew: what was probed and listed was somebody else.
func (m *Machine) Lost() { *m = Machine{changes: m.changes} }

// Refusing says whether the last thing that was heard is a refusal.
func (m *Machine) Refusing() bool { return m.state == Unfit && m.failures == 0 && m.successes == 0 }

// Silent says whether the last probe got no answer.
func (m *Machine) Silent() bool { return m.failures > 0 }

func (m *Machine) refuse(at time.Time, r Result) {
	m.last, m.failures, m.successes = r, 0, 0
	m.listed = time.Time{}
	m.change(at, Unfit)
}

// Outdated says whether a watch that began then has to begin anew: the member was given up
// since, and is not known to be well before it is listed again. Time alone may have done
// that, while the watch went on.
func (m *Machine) Outdated(began time.Time) bool {
	return m.failures == 0 && m.listed.IsZero() && !m.dropped.IsZero() && !m.dropped.Before(began)
}

// Tick lets time pass.
func (m *Machine) Tick(now time.Time) {
	switch {
	case m.failures > 0:
		if m.state == Ready {
			m.change(now, Suspect)
		}
		if m.failures >= OfflineFailures && now.Sub(m.failing) >= OfflineAfter {
			m.change(now, Offline)
			m.listed = time.Time{}
			m.dropped = now
		}
	case m.successes > 0 && m.state != Ready && m.proven(now):
		m.change(now, Ready)
	}
}

// proven says whether a member that was not Ready is so now.
func (m *Machine) proven(now time.Time) bool {
	if m.listed.IsZero() {
		return false
	}
	flaps := m.flaps(now)
	if m.state == Connecting || m.state == Suspect && flaps == 0 {
		return true
	}
	return m.successes >= ReadySuccesses && now.Sub(m.succeeding) >= readyAfter(flaps)
}

// Next is when Tick would change the state without another probe; zero: never.
func (m *Machine) Next(now time.Time) time.Time {
	switch {
	case m.failures >= OfflineFailures && m.state != Offline:
		return m.failing.Add(OfflineAfter)
	case m.failures == 0 && m.successes >= ReadySuccesses && m.state != Ready && !m.listed.IsZero():
		return m.succeeding.Add(readyAfter(m.flaps(now)))
	}
	return time.Time{}
}

// State is the state, and why it is so.
func (m *Machine) State(now time.Time) (state State, reason, message string) {
	switch {
	case m.state == Ready:
		return m.state, "", ""
	case m.Refusing(), m.failures > 0:
		return m.state, m.last.Reason, m.last.Message
	case m.state == Connecting && m.successes == 0:
		return m.state, ReasonConnecting, "it has not answered yet"
	case m.listed.IsZero():
		return m.state, ReasonReturning, "it answers; its AdvDeployments are not listed yet"
	}
	flaps := m.flaps(now)
	reason = ReasonReturning
	if flaps > 0 {
		reason = ReasonFlapping
	}
	return m.state, reason, fmt.Sprintf("it answers again, and has to do so for %s", readyAfter(flaps))
}

// change notes a change of the state. The first contact is none.
func (m *Machine) change(now time.Time, to State) {
	if m.state == to {
		return
	}
	if m.state != Connecting {
		m.changes = append(m.changes, now)
		if len(m.changes) > remembered {
			m.changes = m.changes[1:]
		}
	}
	m.state = to
}

// flaps is by how many the changes of late are more than what is borne.
func (m *Machine) flaps(now time.Time) int {
	n := 0
	for _, at := range m.changes {
		if now.Sub(at) < FlapWithin {
			n++
		}
	}
	return max(n-FlapChanges, 0)
}

func readyAfter(flaps int) time.Duration {
	wait := ReadyAfter
	for range flaps {
		wait = min(2*wait, FlapMax)
	}
	return wait
}

// Fresh says whether a member's caches are known to be current: it answers, and there was
// evidence at asOf. One probe that was lost proves nothing about what the watch showed.
func Fresh(state State, asOf, now time.Time) bool {
	return (state == Ready || state == Suspect) && !asOf.IsZero() && now.Sub(asOf) <= FreshWithin
}
