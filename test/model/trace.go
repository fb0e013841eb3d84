package main

import (
	"errors"
	"fmt"
	"strings"
)

// explain adds the shortest way to the head to a violation.
func (e *explorer) explain(err error) error {
	var v violation
	if !errors.As(err, &v) {
		return err
	}
	var way []uint32
	for n := e.head; n != 0; n = e.nodes[n].parent {
		way = append(way, n)
	}
	way = append(way, 0)
	var b strings.Builder
	for k := len(way) - 1; k >= 0; k-- {
		s := e.stateOf(way[k])
		if k < len(way)-1 {
			fmt.Fprintf(&b, "%2d. %s\n", len(way)-1-k, e.between(way[k+1], s))
		}
		for num := range e.Instances {
			fmt.Fprintf(&b, "      %d: %s\n", num, s[num])
		}
	}
	s := e.stateOf(e.head)
	b.WriteString("then the plan is:\n")
	_, p := e.plan(&s)
	for _, a := range p.Actions {
		fmt.Fprintf(&b, "      %s %s (%s): %s\n", a.Op, a.ID, a.Reason, a.Why)
	}
	for _, i := range p.Instances {
		if i.Why != "" {
			fmt.Fprintf(&b, "      %s waits (%s): %s\n", i.ID, i.Reason, i.Why)
		}
	}
	return fmt.Errorf("%s: %w\n%s", e.Name, v, b.String())
}

// between says what led from a node to a state.
func (e *explorer) between(from uint32, to state) string {
	head := e.head
	defer func() { e.head, e.tell = head, nil }()
	what := "?"
	e.head = from
	e.tell = func(w func() string, s state) {
		if what == "?" && s == to {
			what = w()
		}
	}
	_ = e.expand() // it has been judged before
	return what
}
