// Package rollout visits every state that the budget of two units can get into, with the
// functions of plan/rollout in the place of the master, and judges that no more instances
// are voluntarily out of service than the budget allows.
//
// In each state any of this may happen: the master writes any grant and content that the
// protocol allows, reserved where that is asked for; the write arrives late, or never, since
// its reply was lost or its leader died; the worker carries the part to the child; the
// child's own controller follows; it takes an instance out of service, or updates one that
// is; instances return, fail by themselves and recover; the worker reports; the master looks.
package rollout

import (
	"bytes"
	"fmt"

	plan "tkestack.io/tapp/plan/rollout"
)

// size of a unit, in instances.
const size = 2

// Instances are up, voluntarily out of service, or failed by themselves.
const (
	up = iota
	voluntary
	failed
)

// order is what is asked of a controller: a content, and a grant for it.
type order struct{ grant, content uint8 }

// part is what the member has of a unit: what was written, and what the worker reported.
type part struct {
	order
	ceiling                      uint8
	observed, updated, available uint8
}

// pending is a write that may arrive as long as the part is as it was.
type pending struct {
	order
	ceiling        uint8
	pending, valid bool
}

// unit and all that lags behind another.
type unit struct {
	instances       [2][3]uint8 // by content and what they are
	part            part        // in the member
	child, enforced order       // what the worker applied, what the child's controller follows
	sight           part        // as the master saw it last
	write           pending
	limit           uint8 // the bound in the master's record
	failures        uint8 // that may come yet
}

type state [2]unit

// protocol is what the master goes by.
type protocol struct {
	// account of a unit as the master sees it.
	account func(u *unit) plan.Account
	// room for a grant.
	room func(accounts []plan.Account, unit int, budget int32) int32
	// ceiling to write with a grant.
	ceiling func(a plan.Account, grant int32) int32
	// reserves: grants are recorded before they are written.
	reserves bool
}

// ours is the protocol of the product.
func ours() protocol {
	return protocol{account: account, room: plan.Room, ceiling: plan.Account.CeilingFor, reserves: true}
}

// account of a unit by what was seen of it, and what is recorded.
func account(u *unit) plan.Account {
	a := seen(u)
	limit := int32(u.limit)
	a.Limit, a.Pending = &limit, u.write.pending
	return a
}

// seen of a unit, without a record.
func seen(u *unit) plan.Account {
	grant, ceiling := int32(u.sight.grant), int32(u.sight.ceiling)
	return plan.Account{Desired: size, Grant: &grant, Ceiling: &ceiling, Observed: u.sight.observed == 1,
		Unavailable: size - int32(u.sight.available), Remaining: plan.Remaining(size, size, int32(u.sight.updated), int32(u.sight.available))}
}

// simple charges by one formula, has the ceiling fall with the first report, and reserves
// nothing.
func simple(charge func(a plan.Account) int32) protocol {
	return protocol{
		account: seen,
		room: func(accounts []plan.Account, unit int, budget int32) int32 {
			return budget - charge(accounts[1-unit])
		},
		ceiling: func(a plan.Account, grant int32) int32 {
			if a.Observed {
				return max(grant, *a.Grant)
			}
			return max(grant, *a.Ceiling)
		},
	}
}

// space is one exploration.
type space struct {
	protocol
	budget   int32
	failures uint8
	// prompt: the master sees every report at once; direct: the child's controller follows
	// the worker at once. Each leaves states out.
	prompt, direct bool
	seen           map[state]state // from which it was reached first
	queue          []state
	now            state
}

// start: all run content 0, nothing was granted.
func (s *space) start() state {
	var u unit
	u.instances[0][up] = size
	u.part.observed, u.part.updated, u.part.available = 1, size, size
	u.sight, u.failures = u.part, s.failures
	return state{u, u}
}

// explore all states, until one breaks the budget. It returns how many there are, and the
// one that breaks it.
func (s *space) explore() (states int, broken *state) {
	s.seen = map[state]state{}
	s.add(s.start())
	for len(s.queue) > 0 {
		now := s.queue[0]
		s.now = now
		s.queue = s.queue[1:]
		if out := now[0].out(voluntary) + now[1].out(voluntary); int32(out) > s.budget {
			return len(s.seen), &now
		}
		for i := range now {
			s.steps(now, i)
		}
	}
	return len(s.seen), nil
}

// out are the instances of a unit that are so, of both contents.
func (u *unit) out(what int) uint8 { return u.instances[0][what] + u.instances[1][what] }

// add a state. The two units are alike.
func (s *space) add(to state) {
	a, b := to[0].bytes(), to[1].bytes()
	if bytes.Compare(b[:], a[:]) < 0 {
		to[0], to[1] = to[1], to[0]
	}
	if _, known := s.seen[to]; !known {
		s.seen[to] = s.now
		s.queue = append(s.queue, to)
	}
}

// way to a state, from the first one.
func (s *space) way(to state) (out string) {
	for at := to; at != s.start(); at = s.seen[at] {
		out = fmt.Sprintf("\n%+v", at) + out
	}
	return out
}

// bytes of a unit, to have an order.
func (u *unit) bytes() (out [32]byte) {
	at := 0
	put := func(bytes ...uint8) { at += copy(out[at:], bytes) }
	for _, of := range u.instances {
		put(of[:]...)
	}
	for _, p := range []*part{&u.part, &u.sight} {
		put(p.grant, p.content, p.ceiling, p.observed, p.updated, p.available)
	}
	put(u.child.grant, u.child.content, u.enforced.grant, u.enforced.content, u.write.grant, u.write.content, u.write.ceiling, u.limit, u.failures)
	if u.write.pending {
		put(1)
	}
	if u.write.valid {
		put(2)
	}
	return out
}

// steps of one unit.
func (s *space) steps(now state, i int) {
	step := func(change func(u *unit)) {
		to := now
		change(&to[i])
		s.add(to)
	}
	u := &now[i]
	if u.child != u.part.order {
		step(func(u *unit) {
			u.child = u.part.order
			if s.direct {
				u.enforced = u.child
			}
		})
	}
	if u.enforced != u.child {
		step(func(u *unit) { u.enforced = u.child })
	}
	if report := u.report(); report != u.part {
		step(func(u *unit) {
			if u.part, u.write.valid = report, false; s.prompt {
				u.look()
			}
		})
	}
	if u.sight != u.part || u.write.pending && !u.write.valid {
		step(func(u *unit) { u.look() })
	}
	if u.write.pending && u.write.valid {
		step(func(u *unit) {
			if u.land(); s.prompt {
				u.look()
			}
		})
	}
	s.live(now, i)
	if u.sight == u.part {
		s.write(now, i)
	}
}

// report of the worker, when the child's controller has followed.
func (u *unit) report() part {
	out := u.part
	if u.child != u.part.order || u.enforced != u.child {
		return out
	}
	of := u.instances[u.enforced.content]
	out.observed, out.updated, out.available = 1, of[up]+of[voluntary]+of[failed], u.out(up)
	return out
}

// look at the part: what was reserved for an older one cannot arrive any more.
func (u *unit) look() {
	u.sight = u.part
	if !u.write.valid {
		u.write = pending{}
	}
}

// land a write that was under way.
func (u *unit) land() {
	u.part.order, u.part.ceiling, u.part.observed = u.write.order, u.write.ceiling, 0
	u.write.valid = false
}

// live are the steps of the unit's instances, and of their controller.
func (s *space) live(now state, i int) {
	for content := range uint8(2) {
		for what := range 3 {
			if now[i].instances[content][what] == 0 {
				continue
			}
			move := func(toContent uint8, to int, failures uint8) {
				next := now
				u := &next[i]
				u.instances[content][what]--
				u.instances[toContent][to]++
				u.failures -= failures
				s.add(next)
			}
			u := &now[i]
			follows := u.enforced.content
			switch {
			case what != up:
				move(content, up, 0)
				if content != follows {
					move(follows, what, 0)
				}
			default:
				if content != follows && u.out(voluntary)+u.out(failed) < u.enforced.grant {
					move(follows, voluntary, 0)
				}
				if u.failures > 0 {
					move(content, failed, 1)
				}
			}
		}
	}
}

// write any grant and content that the protocol allows.
func (s *space) write(now state, i int) {
	accounts := []plan.Account{s.account(&now[0]), s.account(&now[1])}
	room := s.room(accounts, i, s.budget)
	for grant := range uint8(size + 1) {
		for content := range uint8(2) {
			next := now
			u := &next[i]
			asked := order{grant, content}
			if asked == u.part.order || int32(grant) > room { // a lower one, too, if more than is out of service
				continue
			}
			ceiling := uint8(s.ceiling(accounts[i], int32(grant)))
			u.write = pending{order: asked, ceiling: ceiling, pending: true, valid: true}
			if s.reserves && grant > 0 {
				next[1-i].limit = uint8(accounts[1-i].Bound())
				u.limit = ceiling
				s.add(next)
				continue
			}
			if !s.reserves {
				s.add(next) // its reply is lost, or its leader died
			}
			u.land()
			u.look()
			s.add(next)
		}
	}
}
