package rollout

import (
	"flag"
	"strings"
	"testing"

	plan "tkestack.io/tapp/plan/rollout"
)

// whole explores the spaces that `make model` does.
var whole = flag.Bool("whole", false, "explore the large spaces, too")

// TestProtocol: in no state of these spaces is more out of service than the budget allows.
func TestProtocol(t *testing.T) {
	unproven := ours()
	unproven.account = func(u *unit) plan.Account {
		a := account(u)
		a.Unproven = true
		return a
	}
	spaces := []*space{{budget: 1, prompt: true, direct: true}, {protocol: unproven, budget: 1, prompt: true, direct: true}}
	if *whole {
		spaces = append(spaces, &space{protocol: unproven, budget: 1, failures: 1, prompt: true, direct: true}, &space{protocol: unproven, budget: 2, prompt: true, direct: true})
		spaces = append(spaces, &space{budget: 1, prompt: true, direct: true, failures: 1}, &space{budget: 2, prompt: true, direct: true},
			&space{budget: 1, direct: true}, &space{budget: 1, prompt: true}, &space{budget: 1})
	}
	for _, s := range spaces {
		if s.room == nil {
			s.protocol = ours()
		}
		states, broken := s.explore()
		t.Logf("budget %d, %d failures, prompt %v, direct %v: %d states", s.budget, s.failures, s.prompt, s.direct, states)
		if broken != nil {
			t.Errorf("over the budget of %d:%s", s.budget, s.way(*broken))
		}
	}
}

// TestSimplerProtocols: each of them breaks the budget, so that none of what the protocol
// does can be left out.
func TestSimplerProtocols(t *testing.T) {
	charge := func(f func(a plan.Account) int32) func() protocol { return func() protocol { return simple(f) } }
	but := func(change func(p *protocol)) func() protocol {
		return func() protocol {
			p := ours()
			change(&p)
			return p
		}
	}
	ceiling := func(a plan.Account) int32 {
		if a.Observed {
			return *a.Grant
		}
		return *a.Ceiling
	}
	for name, p := range map[string]func() protocol{
		"by the grant alone":              charge(func(a plan.Account) int32 { return *a.Grant }),
		"by the grant and what is seen":   charge(func(a plan.Account) int32 { return max(*a.Grant, a.Unavailable) }),
		"by the ceiling alone":            charge(ceiling),
		"by the ceiling and what is seen": charge(func(a plan.Account) int32 { return max(ceiling(a), a.Unavailable) }),
		"without reservations":            but(func(p *protocol) { p.reserves, p.account = false, seen }),
		"without a record of bounds": but(func(p *protocol) {
			p.account = func(u *unit) plan.Account {
				a := account(u)
				if !a.Pending {
					a.Limit = nil
				}
				return a
			}
		}),
		"what fails by itself may always be updated": but(func(p *protocol) {
			p.room = func(accounts []plan.Account, unit int, budget int32) int32 {
				return max(plan.Room(accounts, unit, budget), min(1, accounts[unit].Unavailable))
			}
		}),
		"the worker's word for the child's controller": but(func(p *protocol) {
			p.account = func(u *unit) plan.Account {
				told := *u
				if told.child == told.part.order {
					told.sight.observed = 1
				}
				return account(&told)
			}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			s := &space{protocol: p(), budget: 1, failures: 1, prompt: true, direct: !strings.Contains(name, "worker")}
			states, broken := s.explore()
			if broken == nil {
				t.Fatalf("nothing was over the budget in %d states", states)
			}
			t.Logf("state %d:%s", states, s.way(*broken))
		})
	}
}
