package stages

import (
	"fmt"

	plan "tkestack.io/tapp/plan/rollout"
)

// space is one exploration.
type space struct {
	limits
	nodes []node
	known map[state]int32
	// records by their texts.
	records map[string]*plan.Record
	// ended are states from which all has been shown to end well.
	ended map[state]bool
	// texts are the strings of states, each once.
	texts map[string]string
	// waits, halts and returns count the states of these kinds: a space without them shows
	// nothing.
	waits, halts, returns int
}

// node is a state with the way to it.
type node struct {
	state  state
	parent int32
	what   string
}

// first state: v1 is installed everywhere, and the record says so.
func (x *space) first() (s state) {
	s.asked = revision{1, 1}
	for c := range s.members {
		for g := range s.members[c].podSets {
			s.members[c].podSets[g] = podSet{has: 1, observed: true, runs: 1, up: true}
		}
	}
	for d := x.decide(&s); d.Store; d = x.decide(&s) {
		s.record = x.stored(d.Record)
	}
	s.ids = s.record.ID
	return s
}

// explore all states, until something is wrong in one.
func (x *space) explore() error {
	x.known, x.ended, x.texts, x.records = map[state]int32{}, map[state]bool{}, map[string]string{}, map[string]*plan.Record{}
	x.add(x.first(), -1, "v1 is installed")
	for at := int32(0); int(at) < len(x.nodes); at++ {
		s := x.nodes[at].state
		d := x.decide(&s)
		x.count(&d)
		err := x.judgeDecision(&s, &d)
		if err == nil {
			err = x.ends(s)
		}
		if err != nil {
			return fmt.Errorf("%w%s", err, x.way(at))
		}
		for _, next := range x.steps(&x.limits, &s, &d) {
			if err := x.judge(&s, &next); err != nil {
				return fmt.Errorf("%w: %s%s", err, next.what, x.way(at))
			}
			next.to.note(&s)
			x.add(next.to, at, next.what)
		}
	}
	return nil
}

func (x *space) count(d *plan.Decision) {
	switch d.State {
	case plan.Waiting:
		x.waits++
	case plan.Halted:
		x.halts++
	case plan.Returning, plan.RollingBack:
		x.returns++
	}
}

func (x *space) add(s state, parent int32, what string) {
	for _, text := range []*string{&s.retry, &s.confirmed, &s.ids, &what} {
		if one, known := x.texts[*text]; known {
			*text = one
		} else {
			x.texts[*text] = *text
		}
	}
	if _, known := x.known[s]; !known {
		x.known[s] = int32(len(x.nodes))
		x.nodes = append(x.nodes, node{s, parent, what})
	}
}

// way to a state, from the first one.
func (x *space) way(at int32) (out string) {
	for ; at >= 0; at = x.nodes[at].parent {
		out = "\n" + x.nodes[at].what + out
	}
	return out
}

// mostEnding is how many steps it may take until all is where it is to be.
const mostEnding = 200

// ends: as soon as nothing goes wrong any more, and users confirm and try again, all gets where
// it is to be, and then nothing is written.
func (x *space) ends(from state) error {
	s, passed, what := from, []state(nil), ""
	calm := x.limits
	calm.retries = ^uint8(0)
	for range mostEnding {
		if x.ended[s] {
			break
		}
		passed = append(passed, s)
		d := calm.decide(&s)
		var next *step
		for _, one := range x.steps(&calm, &s, &d) {
			if one.kind != toHarm && (next == nil || one.kind < next.kind) {
				next = &one
			}
		}
		if next == nil {
			if err := s.isWell(&d); err != nil {
				return err
			}
			x.ended[s] = true
			break
		}
		what += "\n" + next.what
		next.to.note(&s)
		s = next.to
	}
	if !x.ended[s] {
		return fmt.Errorf("L2: no rest after %d steps in which nothing went wrong:%s\nwhich came after", mostEnding, what)
	}
	for _, one := range passed {
		x.ended[one] = true
	}
	return nil
}

// isWell says what is not where it is to be at rest.
func (s *state) isWell(d *plan.Decision) error {
	if d.State != plan.Done {
		return fmt.Errorf("L2: at rest, and the rollout is %s: %s", d.State, d.Why)
	}
	for c := range s.members {
		for g := range s.members[c].podSets {
			if p := &s.members[c].podSets[g]; !p.isDone() || p.has != s.asked[g] {
				return fmt.Errorf("L2: at rest, and %s/%s has %s, and %s is asked for", clusterNames[c], groupNames[g], p.has, s.asked[g])
			}
		}
	}
	return nil
}
