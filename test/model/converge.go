package main

import (
	"fmt"
	"strings"
)

// acyclic: convergence. In calm, every transition takes at least one instance along
// one of its own steps, and changes no other. So where no instance can come back to
// where it was, the whole cannot, and every way ends, in whatever order things
// happen; expand has made sure that it ends only where all is settled.
func (e *explorer) acyclic() error {
	next := map[uint16][]uint16{}
	for step := range e.calm {
		next[step.from] = append(next[step.from], step.to)
	}
	const open, done = 1, 2
	state := map[uint16]int{}
	var path []uint16
	var walk func(n uint16) error
	walk = func(n uint16) error {
		state[n] = open
		path = append(path, n)
		for _, to := range next[n] {
			switch state[to] {
			case open:
				return e.cycle(append(path, to))
			case 0:
				if err := walk(to); err != nil {
					return err
				}
			}
		}
		path = path[:len(path)-1]
		state[n] = done
		return nil
	}
	for n := range e.kinds {
		if state[uint16(n)] == 0 {
			if err := walk(uint16(n)); err != nil {
				return err
			}
		}
	}
	return nil
}

// cycle tells of an instance that goes in circles: path ends with a number that it
// had before.
func (e *explorer) cycle(path []uint16) error {
	last := path[len(path)-1]
	for path[0] != last {
		path = path[1:]
	}
	e.head = e.calm[edge{path[0], path[1]}]
	var b strings.Builder
	for _, n := range path {
		fmt.Fprintf(&b, "\n    %s", e.kinds[n])
	}
	return breaks("L1", "an instance goes in circles:%s", b.String())
}
