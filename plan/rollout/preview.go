package rollout

import (
	"slices"
	"strconv"
	"time"
)

// Step of a rollout that is told ahead: what happens to these units at once, or a gate.
type Step struct {
	// Stage by name; empty: the units are in none, such as those that return.
	Stage string
	// Units that are asked for another content or created, by their index in Input.
	Units []int
	// Contents and Grants of them, in that order; nil: no limit but the kind's own.
	Contents []string
	Grants   []*int32
	// Gate: here the rollout waits for a Confirmation. Soak: here it waits that long.
	Gate bool
	Soak time.Duration
}

// Forecast is what a rollout will do if nothing fails.
type Forecast struct {
	// ID of the rollout, and whether it is one that begins.
	ID    string
	Begin bool
	Steps []Step
	// Blocked says why it does not get to its end; empty: it does.
	Blocked string
	// End is the decision at the end of it.
	End Decision
}

// maxSteps bounds a forecast: a unit takes a few of them, and has its own turn at worst.
const maxSteps = 8

// Preview tells what Compute will decide from here on, if all units do what they are asked
// for, gates are confirmed, and nothing fails. It never mutates its input.
func Preview(in Input) Forecast {
	in.Units = slices.Clone(in.Units)
	in.Confirmations = slices.Clone(in.Confirmations)
	out := Forecast{}
	for n := range maxSteps * (len(in.Units) + 8) {
		d := Compute(in)
		if d.State == Unknown {
			out.Blocked, out.End = d.Why, d
			return out
		}
		if n == 0 {
			out.ID, out.Begin = d.Record.ID, in.Record == nil || in.Record.ID != d.Record.ID
		}
		in.Record, out.End = d.Record, d
		for i := range in.Units { // as the record has them now
			in.Units[i].Before = in.Units[i].Target
			if d.Record.Done {
				in.Units[i].Stable, in.HasStable = in.Units[i].Target, true
			}
		}
		step, moved := carryOut(&in, &d)
		switch {
		case d.Store: // the same again, with what is stored
		case len(step.Units) > 0:
			out.Steps = append(out.Steps, step)
		case moved:
		case d.State == Waiting && d.Stages[d.Current].Token != "":
			stage := d.Stages[d.Current]
			out.Steps = append(out.Steps, Step{Stage: stage.Name, Gate: true})
			in.Confirmations = append(in.Confirmations, Confirmation{d.Record.ID, stage.Name, stage.Token, ""})
		case d.Current >= 0 && d.Wait > 0 && d.Stages[d.Current].Unfinished == 0 && d.State == Staged:
			out.Steps = append(out.Steps, Step{Stage: d.Stages[d.Current].Name, Soak: d.Wait})
			in.Now = in.Now.Add(d.Wait)
		default:
			if d.State != Done {
				out.Blocked = blocked(&in, &d)
			}
			return out
		}
	}
	return out
}

// blocked says why nothing goes on.
func blocked(in *Input, d *Decision) string {
	if d.Why != "" {
		return d.Why
	}
	for i := range d.Units {
		if !d.Units[i].Done && d.Units[i].Why != "" {
			return in.Units[i].String() + ": " + d.Units[i].Why
		}
	}
	for i := range d.Units {
		if !d.Units[i].Done {
			return in.Units[i].String() + " is not where it is to be"
		}
	}
	return ""
}

// carryOut what is decided, all at once. moved: a unit that was on its way has arrived.
func carryOut(in *Input, d *Decision) (step Step, moved bool) {
	if d.Store {
		return step, false
	}
	if d.Current >= 0 {
		step.Stage = d.Stages[d.Current].Name
	}
	for i := range in.Units {
		u, v := &in.Units[i], &d.Units[i]
		if v.Content == "" || !reaches(in, u.Cluster) || !v.Reserved {
			continue
		}
		if v.Content != u.Has {
			step.Units, step.Contents, step.Grants = append(step.Units, i), append(step.Contents, v.Content), append(step.Grants, v.Grant)
		}
		arrived := *u
		arrived.Has, arrived.Grant, arrived.Ceiling, arrived.Observed = v.Content, v.Grant, v.Ceiling, true
		if v.Content != u.Has || v.Grant == nil || *v.Grant > 0 {
			arrived.Desired, arrived.Current, arrived.Updated, arrived.Available = u.Replicas, u.Replicas, u.Replicas, u.Replicas
		}
		if arrived != *u {
			moved = true
			version, _ := strconv.ParseUint(u.Version, 10, 64)
			arrived.Version = strconv.FormatUint(version+1, 10)
			*u = arrived
		}
	}
	return step, moved
}

func reaches(in *Input, cluster string) bool {
	return slices.ContainsFunc(in.Clusters, func(c Cluster) bool { return c.Name == cluster && c.Fresh })
}
