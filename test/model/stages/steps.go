package stages

import (
	"encoding/json"
	"fmt"

	plan "tkestack.io/tapp/plan/rollout"
)

// step that can be taken: what happens, and where that leads to.
type step struct {
	what string
	to   state
	// kind orders them where all goes well: see ends.
	kind kind
}

// kind of a step.
type kind int

const (
	byMaster kind = iota
	byWorker
	byController
	byItself // an instance recovers
	byUser   // who confirms, and tries again
	toHarm   // what nobody needs: other contents, failures, silence
)

// decide what the master does in a state.
func (l *limits) decide(s *state) plan.Decision { return plan.Compute(l.input(s)) }

// steps from a state, within limits.
func (x *space) steps(l *limits, s *state, d *plan.Decision) (out []step) {
	add := func(k kind, what string, change func(to *state)) {
		to := *s
		change(&to)
		out = append(out, step{what, to, k})
	}
	x.master(s, d, add)
	for c := range s.members {
		name := clusterNames[c]
		if s.members[c].silent {
			add(byItself, name+" is back", func(to *state) { to.members[c].silent, to.members[c].seen = false, [groups]podSet{} })
		} else if s.cuts < l.cuts {
			add(toHarm, name+" is silent", func(to *state) {
				to.cuts++
				to.members[c].silent, to.members[c].seen = true, to.members[c].podSets
			})
		}
		for g := range s.members[c].podSets {
			l.live(s, c, g, add)
		}
	}
	l.users(s, d, add)
	return out
}

type adder func(k kind, what string, change func(to *state))

// master stores its record, or, if that is as it should be, writes to one cluster.
func (x *space) master(s *state, d *plan.Decision, add adder) {
	if d.Store {
		record := x.stored(d.Record)
		add(byMaster, "the master records "+record.ID, func(to *state) { to.record = record })
		return
	}
	for c := range s.members {
		m := s.members[c]
		if m.silent {
			continue
		}
		what, differs := "", false
		for g := range m.podSets {
			p, v := &m.podSets[g], &d.Units[c*groups+g]
			n := byte(0)
			_, _ = fmt.Sscanf(v.Content, "v%d", &n)
			held := v.Grant != nil && *v.Grant == 0
			differs = differs || p.has != content(n) || p.held != held
			p.has, p.held, p.observed = content(n), held, false
			what += fmt.Sprintf(" %s %s held %t", groupNames[g], p.has, held)
		}
		if differs {
			add(byMaster, "the master writes to "+clusterNames[c]+what, func(to *state) { to.members[c] = m })
		}
	}
}

// stored is a record as it is read again; equal ones are one.
func (x *space) stored(r *plan.Record) *plan.Record {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // it came from JSON
	}
	if x.records[string(text)] == nil {
		out := &plan.Record{}
		if err := json.Unmarshal(text, out); err != nil {
			panic(err) // it was written here
		}
		x.records[string(text)] = out
	}
	return x.records[string(text)]
}

// live are the steps of a podSet: its worker reports, its controller changes the instance, and
// that fails and recovers by itself.
func (l *limits) live(s *state, c, g int, add adder) {
	p, name := &s.members[c].podSets[g], clusterNames[c]+"/"+groupNames[g]
	at := func(to *state) *podSet { return &to.members[c].podSets[g] }
	if !p.observed {
		add(byWorker, name+" is reported", func(to *state) { at(to).observed = true })
	}
	changes := p.observed && p.runs != p.has && !p.held
	if changes {
		add(byController, name+" is changed", func(to *state) { at(to).runs, at(to).up, at(to).bad = p.has, true, false })
	}
	if changes && s.failures < l.failures {
		add(toHarm, name+" is changed and does not come up", func(to *state) {
			to.failures++
			at(to).runs, at(to).up, at(to).bad = p.has, false, true
		})
	}
	switch {
	case !p.up && !changes:
		add(byItself, name+" recovers", func(to *state) { at(to).up, at(to).bad = true, false })
	case p.up && s.failures < l.failures:
		add(toHarm, name+" fails by itself", func(to *state) {
			to.failures++
			at(to).up = false
		})
	}
}

// users ask for another content, write gates away, confirm, and try again.
func (l *limits) users(s *state, d *plan.Decision, add adder) {
	if s.edits < l.edits {
		for _, r := range l.wishes() {
			if r != s.asked {
				add(toHarm, "a user asks for "+r.String(), func(to *state) {
					to.edits++
					to.asked = r
				})
			}
		}
	}
	if s.lowers < l.lowers && !s.lowered {
		add(toHarm, "a user writes the gates away", func(to *state) {
			to.lowers++
			to.lowered = true
		})
	}
	if d.Store {
		return // nobody is told of it yet
	}
	if d.State == plan.Waiting {
		token := d.Stages[d.Current].Token
		add(byUser, "a user confirms stage "+d.Stages[d.Current].Name, func(to *state) { to.confirm(d.Record.ID, token) })
	}
	if d.Record.Halted != "" && s.retries < l.retries {
		add(byUser, "a user tries again", func(to *state) {
			to.retries++
			to.retry = fmt.Sprintf("%s/%d", d.Record.ID, to.retries)
		})
	}
}

// wishes of users.
func (l *limits) wishes() []revision {
	out := []revision{{1, 1}, {2, 2}, {3, 3}}
	if l.apart {
		out = append(out, revision{1, 2}, revision{2, 1})
	}
	return out
}
