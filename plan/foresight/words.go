package foresight

import (
	"fmt"
	"slices"
	"strings"

	"tkestack.io/tapp/plan/effect"
	"tkestack.io/tapp/plan/rollout"
)

// Lines tell a preview in few sentences: one for each stage, with instances of which the same
// becomes counted together.
func (p *Preview) Lines() []string {
	var out []string
	for _, problem := range p.Problems {
		out = append(out, problem.Field+": "+problem.Why)
	}
	at := "at once"
	if p.State == rollout.Returning {
		at = "in all clusters at once, within the budget"
	}
	for _, text := range Told(p.AtOnce) {
		out = append(out, at+": "+text)
	}
	for i := range p.Stages {
		out = append(out, p.Stages[i].Head()+": "+strings.Join(Told(p.Stages[i].Changes), "; ")+p.Stages[i].Tail())
	}
	for _, text := range Told(p.Last) {
		out = append(out, "as soon as the others are available: "+text)
	}
	return append(out, p.Notes...)
}

// Head names a stage and its clusters.
func (s *Stage) Head() string {
	head := fmt.Sprintf("stage %s (%s", s.Name, someOf(s.Clusters))
	if len(s.Clusters) > 1 {
		head += fmt.Sprintf("; %d at a time", s.Concurrent)
	}
	return head + ")"
}

// someOf the names, and how many more there are.
func someOf(names []string) string {
	const most = 5
	if more := len(names) - most; more > 0 {
		names = append(slices.Clone(names[:most]), fmt.Sprintf("... %d more", more))
	}
	return strings.Join(names, ", ")
}

// Tail says what follows a stage; empty: nothing in particular.
func (s *Stage) Tail() string {
	out := ""
	if s.SoakSeconds > 0 {
		out = fmt.Sprintf("; it has to stay well for %d s", s.SoakSeconds)
	}
	if s.Confirm {
		out += "; then it waits for a confirmation"
	}
	return out
}

// Told in sentences: instances of which the same becomes for the same reason are counted
// together, in the order in which they come first.
func Told(changes []Change) (out []string) {
	type key struct {
		effect effect.Effect
		why    string
	}
	var order []key
	count := map[key]int{}
	for i := range changes {
		k := key{changes[i].Effect, changes[i].Why}
		if count[k] == 0 {
			order = append(order, k)
		}
		count[k] += changes[i].Instances
	}
	for _, k := range order {
		out = append(out, fmt.Sprintf("%s: %s", Words(k.effect, count[k]), k.why))
	}
	return out
}

// Words for an effect on a number of instances, such as "2 instances are recreated".
func Words(e effect.Effect, n int) string {
	if e != EffectUpgrade {
		return e.Words(n)
	}
	if n == 1 {
		return "1 instance is upgraded with its release"
	}
	return fmt.Sprintf("%d instances are upgraded with their releases", n)
}
