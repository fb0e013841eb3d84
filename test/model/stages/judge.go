package stages

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	plan "tkestack.io/tapp/plan/rollout"
)

// truth is what the judges remember of the rollout on record. They go by what users asked
// for and by what was reported, and know nothing of how rollouts are planned.
type truth struct {
	// ids that rollouts had, the present one last.
	ids string
	// gated: it began with the gate after the canary.
	gated bool
	// had are the podSets that were reported to have what is asked for, and be available.
	had [clusters][groups]bool
}

// note what was reported by now.
func (s *state) note(before *state) {
	if s.record != before.record {
		if id := s.record.ID; id != before.record.ID {
			s.ids, s.gated, s.had = strings.TrimSpace(s.ids+" "+id), !s.lowered, [clusters][groups]bool{}
		}
	}
	if s.record.Revision != s.asked.String() {
		return // the rollout to that has not begun
	}
	for c := range s.members {
		for g := range s.members[c].podSets {
			p := &s.members[c].podSets[g]
			s.had[c][g] = s.had[c][g] || !s.members[c].silent && p.isDone() && p.has == s.asked[g]
		}
	}
}

// judgeDecision finds what a decision must never be.
func (l *limits) judgeDecision(s *state, d *plan.Decision) error {
	for i := range d.Units {
		v, c, g := &d.Units[i], i/groups, i%groups
		p := &s.members[c].podSets[g]
		stable := revisionOf(s.record.Stable)[g].String()
		switch {
		case !v.Reserved:
			return fmt.Errorf("the write of %s/%s is not reserved, and there is no budget", clusterNames[c], groupNames[g])
		case v.Content != s.asked[g].String() && v.Content != stable && v.Content != p.has.String() && v.Content != s.members[c].seen[g].has.String():
			return fmt.Errorf("%s/%s is to have %s, which nobody asks for", clusterNames[c], groupNames[g], v.Content)
		case d.State == plan.Halted && !s.members[c].silent && p.has == s.asked[g] && p.has.String() != stable && !p.isDone() && (v.Grant == nil || *v.Grant != 0):
			return fmt.Errorf("F10: the rollout has halted, and %s/%s may take an instance out of service for it", clusterNames[c], groupNames[g])
		}
	}
	return l.judgeForged(s, d)
}

// judgeForged is F4: Confirmations of other rollouts, stages and tokens change nothing.
func (l *limits) judgeForged(s *state, d *plan.Decision) error {
	if d.State != plan.Waiting {
		return nil
	}
	id, stage := d.Record.ID, d.Stages[d.Current]
	others := []plan.Confirmation{
		{Rollout: id + "0", Stage: stage.Name, Token: stage.Token}, {Rollout: id, Stage: "blue", Token: stage.Token}, {Rollout: id, Stage: stage.Name, Token: stage.Token + "0"}, {Rollout: id, Stage: stage.Name},
	}
	for _, old := range strings.Fields(s.ids) {
		if old != id {
			others = append(others, plan.Confirmation{Rollout: old, Stage: stage.Name, Token: stage.Token})
		}
	}
	if forged := plan.Compute(l.input(s, others...)); !reflect.DeepEqual(&forged, d) {
		return fmt.Errorf("F4: Confirmations of others change what is decided: it was %+v, and is %+v", d, forged)
	}
	return nil
}

// judge a step.
func (l *limits) judge(s *state, x *step) error {
	if x.kind != byMaster {
		return nil
	}
	if x.to.record != s.record {
		return s.judgeRecord(x.to.record)
	}
	for c := range s.members {
		if s.members[c] != x.to.members[c] {
			if err := l.judgeWrite(s, c, &x.to.members[c]); err != nil {
				return err
			}
		}
	}
	return nil
}

// judgeRecord: an id is used once; a gate is open by a Confirmation of that very rollout, and
// while what is before it is well; and what is called stable was reported by all.
func (s *state) judgeRecord(r *plan.Record) error {
	was := s.record
	if r.ID != was.ID && slices.Contains(strings.Fields(s.ids), r.ID) {
		return fmt.Errorf("the id %s is used again", r.ID)
	}
	for _, stage := range r.Stages {
		if stage.ConfirmedBy != "" && (stage.Name != groupNames[0] || !s.isConfirmed(r.ID)) {
			return fmt.Errorf("F4: stage %s of %s counts as confirmed, and nobody did that", stage.Name, r.ID)
		}
	}
	for i := range r.Stages {
		if !r.Stages[i].Passed || r.ID == was.ID && i < len(was.Stages) && was.Stages[i].Passed || r.Stages[i].Name != groupNames[0] {
			continue
		}
		for c := range s.members {
			if p := &s.members[c].podSets[0]; s.members[c].silent || !p.isDone() || p.has != s.asked[0] {
				return fmt.Errorf("F9: the canary of %s counts as done, and that of %s is not well", r.ID, clusterNames[c])
			}
		}
	}
	if r.Stable == was.Stable {
		return nil
	}
	for c := range s.members {
		for g := range s.members[c].podSets {
			if p := &s.members[c].podSets[g]; s.members[c].silent || !p.isDone() || p.has != revisionOf(r.Stable)[g] {
				return fmt.Errorf("%s is called stable, and %s/%s was not reported to have it", r.Stable, clusterNames[c], groupNames[g])
			}
		}
	}
	return nil
}

func (s *state) isConfirmed(id string) bool {
	return slices.ContainsFunc(strings.Fields(s.confirmed), func(text string) bool { return strings.HasPrefix(text, id+"=") })
}

// judgeWrite is F4, F9 and F10, of the podSets that a write gives what is asked for.
func (l *limits) judgeWrite(s *state, c int, to *member) error {
	r := s.record
	stable := revisionOf(r.Stable)
	for g := range to.podSets {
		if to.podSets[g].has == s.members[c].podSets[g].has || to.podSets[g].has == stable[g] {
			continue // a return needs nothing
		}
		name := clusterNames[c] + "/" + groupNames[g]
		canary := s.gated && g > 0 && s.asked[0] != stable[0]
		switch {
		case to.podSets[g].has != s.asked[g] || r.Revision != s.asked.String():
			return fmt.Errorf("%s is given %s, and the rollout is to %s", name, to.podSets[g].has, r.Revision)
		case r.Halted != "":
			return fmt.Errorf("F10: %s is given what failed: %s", name, r.Halted)
		case canary && !s.isConfirmed(r.ID):
			return fmt.Errorf("F4: %s is given %s, and nobody confirmed the canary of %s", name, s.asked[g], r.ID)
		case canary && s.had != [clusters][groups]bool{{true, s.had[0][1]}, {true, s.had[1][1]}}:
			return fmt.Errorf("F9: %s is given %s, and a canary was never seen to have it", name, s.asked[g])
		}
		if n := s.changing(c, g, stable); n > l.concurrent {
			return fmt.Errorf("F9: %s is given %s as the cluster number %d at once, and %d may change", name, s.asked[g], n, l.concurrent)
		}
	}
	return nil
}

// changing clusters of the stage of a podSet, with its own.
func (s *state) changing(c, g int, stable revision) (n int32) {
	for other := range s.members {
		changes := other == c
		for k := range groups {
			p := &s.members[other].podSets[k]
			same := !s.gated || k == g // without an order all is one stage
			changes = changes || same && s.asked[k] != stable[k] && p.has == s.asked[k] && !s.had[other][k]
		}
		if changes {
			n++
		}
	}
	return n
}
