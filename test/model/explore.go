package main

import (
	"fmt"
	"strings"
	"time"

	plan "tkestack.io/tapp/plan/tapp"
)

// result of an exploration.
type result struct {
	states, transitions, kinds, rests int
	depth                             int
	took                              time.Duration
}

// explorer visits every state of a space once, breadth first.
type explorer struct {
	*world
	visited set
	nodes   []node
	kinds   []instance // by number
	numbers map[instance]uint16
	// steps of each kind of instance by itself, in calm.
	calm        map[edge]uint32 // to the node where it was seen first
	transitions int
	rests       int
	head        uint32
	// tell is called for every transition from the head while a trace is made.
	tell func(what func() string, to state)
}

// node is a state with the way to it.
type node struct {
	key    uint64 // the numbers of its instances' kinds
	parent uint32
	depth  uint32
}

// edge of one instance between two of its kinds.
type edge struct{ from, to uint16 }

// maxKinds of instances have numbers.
const maxKinds = 1 << 16

// Explore visits all states of a space. The error tells of a violation, with the
// shortest way to it.
func Explore(c Config, compute func(plan.Input) plan.Plan) (result, error) {
	began := time.Now()
	w, err := newWorld(c, compute)
	if err != nil {
		return result{}, err
	}
	e := &explorer{world: w, numbers: map[instance]uint16{}, calm: map[edge]uint32{}}
	var first state // a new TApp: nothing there yet
	for num, letter := range c.Roles {
		if letter == 'f' {
			first[num].role = forced
		}
	}
	e.visit(first, 0)
	for ; int(e.head) < len(e.nodes); e.head++ {
		if err := e.expand(); err != nil {
			return result{}, e.explain(err)
		}
		if len(e.kinds) > maxKinds {
			return result{}, fmt.Errorf("%s: more than %d kinds of instances", c.Name, maxKinds)
		}
	}
	if err := e.acyclic(); err != nil {
		return result{}, e.explain(err)
	}
	return result{
		states: len(e.nodes), transitions: e.transitions, kinds: len(e.kinds), rests: e.rests,
		depth: int(e.nodes[len(e.nodes)-1].depth), took: time.Since(began),
	}, nil
}

func (e *explorer) number(i instance) uint16 {
	n, ok := e.numbers[i]
	if !ok {
		n = uint16(len(e.kinds))
		e.numbers[i] = n
		e.kinds = append(e.kinds, i)
	}
	return n
}

func (e *explorer) visit(s state, parent uint32) {
	key := uint64(0)
	for num := range e.Instances {
		key |= uint64(e.number(s[num])) << (16 * num)
	}
	depth := uint32(0)
	if len(e.nodes) > 0 {
		depth = e.nodes[parent].depth + 1
	}
	if e.visited.add(key, e.nodes) {
		e.nodes = append(e.nodes, node{key, parent, depth})
	}
}

func (e *explorer) stateOf(n uint32) state {
	var s state
	for num := range e.Instances {
		s[num] = e.kinds[uint16(e.nodes[n].key>>(16*num))]
	}
	return s
}

// reach notes a transition from the head.
func (e *explorer) reach(s state, what func() string) {
	e.transitions++
	if e.tell != nil {
		e.tell(what, s)
		return
	}
	e.visit(s, e.head)
}

// expand judges the head, and visits what follows it.
func (e *explorer) expand() error {
	s := e.stateOf(e.head)
	in, p := e.plan(&s)
	moves, err := e.moves(&s, &p)
	if err != nil {
		return err
	}
	if err := e.judge(&s, moves); err != nil {
		return err
	}
	e.carryOut(s, moves, nil)
	if e.Late {
		if err := e.carryOutLate(s, moves); err != nil {
			return err
		}
	}
	e.noteCalm(&s, moves)
	moving := len(moves) > 0
	for num := range e.Instances {
		for _, step := range e.stepsOf(s[num]) {
			moving = moving || step.calm
			next := s
			next[num] = step.to
			e.reach(next, func() string { return fmt.Sprintf("instance %d: %s", num, step.what) })
		}
	}
	e.scale(s)
	if !moving {
		e.rests++
		return e.judgeRest(&s, in, &p)
	}
	return nil
}

// carryOut reaches what comes of every subset of the writes, each whole or in part:
// the shell makes them at once, any may be lost, and it may end at any moment.
func (e *explorer) carryOut(s state, moves []move, done []string) {
	if len(moves) == 0 {
		if len(done) > 0 {
			e.reach(s, func() string { return "the controller: " + strings.Join(done, ", ") })
		}
		return
	}
	m := &moves[0]
	e.carryOut(s, moves[1:], done)
	name := ""
	if e.tell != nil {
		name = m.String()
	}
	if m.num < 0 {
		next := s
		for num := range e.Instances {
			next[num].stored, next[num].told = m.status[num].stored, m.status[num].told
			e.canonical(&next[num])
		}
		e.carryOut(next, moves[1:], append(done[:len(done):len(done)], name))
		return
	}
	for k, to := range m.to {
		next := s
		next[m.num].pod = to
		e.canonical(&next[m.num])
		if k > 0 && e.tell != nil {
			name = m.String() + " in part"
		}
		e.carryOut(next, moves[1:], append(done[:len(done):len(done)], name))
	}
}

// carryOutLate reaches what comes of single writes that are made after something
// happened to their pod. What happens to others, and what users edit, may as well
// come after the write.
func (e *explorer) carryOutLate(s state, moves []move) error {
	for k := range moves {
		m := &moves[k]
		if m.num < 0 {
			continue
		}
		for _, step := range e.stepsOf(s[m.num]) {
			if step.edit {
				continue
			}
			to, made, err := e.late(m, step)
			if err != nil {
				return err
			}
			if made {
				next := s
				next[m.num].pod = to
				e.canonical(&next[m.num])
				e.reach(next, func() string { return fmt.Sprintf("instance %d: %s, and then the controller: %s", m.num, step.what, m) })
			}
		}
	}
	return nil
}

// noteCalm notes the steps of single instances that the plan makes.
func (e *explorer) noteCalm(s *state, moves []move) {
	note := func(num int, to instance) {
		e.canonical(&to)
		if step := (edge{e.number(s[num]), e.number(to)}); step.from != step.to {
			if _, known := e.calm[step]; !known {
				e.calm[step] = e.head
			}
		}
	}
	for k := range moves {
		if m := &moves[k]; m.num >= 0 {
			to := s[m.num]
			to.pod = m.to[0]
			note(m.num, to)
		} else {
			for num := range e.Instances {
				note(num, m.status[num])
			}
		}
	}
}

// stepsOf an instance by itself: what happens to it, and what users edit.
func (e *explorer) stepsOf(i instance) []step {
	steps, known := e.grown[i]
	if known {
		return steps
	}
	steps = e.happenings(i)
	from := e.number(i)
	for _, s := range steps {
		if s.calm {
			e.calm[edge{from, e.number(s.to)}] = e.head
		}
	}
	steps = append(steps, e.edits(i)...)
	e.grown[i] = steps
	return steps
}

// scale changes the number of replicas by one.
func (e *explorer) scale(s state) {
	if !e.Scaled {
		return
	}
	for num := range e.Instances {
		last := num+1 == e.Instances || s[num+1].role == beyond
		first := num == 0 || s[num-1].role != beyond
		to := s[num]
		switch {
		case to.role != beyond && last:
			to.role = beyond
		case to.role == beyond && first:
			to.role = rolling
		default:
			continue
		}
		e.canonical(&to)
		next := s
		next[num] = to
		e.reach(next, func() string { return fmt.Sprintf("the user scales, and instance %d is %s", num, to.role) })
	}
}
