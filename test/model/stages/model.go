// Package stages visits every state that a rollout of a small fleet can get into, with
// plan/rollout in the place of the master, unchanged, and judges what must never happen.
//
// Two clusters have a canary and a blue podSet of one instance each, and there are three
// contents. In each state any of this may happen: a user asks for another content, writes the
// gates away, confirms the gate that waits or tries again; a cluster falls silent, goes on
// meanwhile, and is back; the master stores its record, or writes to one cluster, and may end
// after each of both, since it remembers nothing else; a worker reports what its podSets follow;
// a controller changes an instance, well or not; one that was well fails, and recovers.
//
//	model.go    states, and what the master is told of them
//	steps.go    what happens next
//	judge.go    what must never happen
//	explore.go  all states, and where each of them has to end
package stages

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	plan "tkestack.io/tapp/plan/rollout"
)

const clusters, groups = 2, 2

var (
	clusterNames = [clusters]string{"a", "b"}
	groupNames   = [groups]string{"canary", "blue"}
)

// content of a podSet, from 1 on.
type content uint8

func (c content) String() string { return "v" + strconv.Itoa(int(c)) }

// revision is what is asked for, by group; the clusters are alike.
type revision [groups]content

func (r revision) String() string { return r[0].String() + "/" + r[1].String() }

func revisionOf(name string) (r revision) {
	for g, text := range strings.SplitN(name, "/", groups) {
		n, _ := strconv.Atoi(strings.TrimPrefix(text, "v"))
		r[g] = content(n)
	}
	return r
}

// podSet of one instance in one cluster.
type podSet struct {
	// has is what its cluster is asked for; held: with a grant of 0.
	has  content
	held bool
	// observed: its worker has reported what follows that.
	observed bool
	// runs is what the instance has. It is up, or down and, where that is no accident, bad.
	runs    content
	up, bad bool
}

// isDone says whether all of it is as it was asked to be, and reported.
func (p *podSet) isDone() bool { return p.observed && p.runs == p.has && p.up }

// member of the fleet, and what the master saw of it last while it is silent.
type member struct {
	podSets, seen [groups]podSet
	silent        bool
}

// state of the fleet. Equal states have the same future.
type state struct {
	members [clusters]member
	asked   revision
	// lowered: users wrote the gates away, and the order with them.
	lowered bool
	// how often it happened so far.
	edits, lowers, failures, cuts, retries uint8
	// record of the master, as it is stored, each once; retry is what a user annotated.
	record *plan.Record
	retry  string
	// confirmed are the rollouts whose canary users have confirmed, when its gate waited.
	confirmed string
	// truth is what the judges remember.
	truth
}

// limits of a space: how often what happens, and how rollouts go.
type limits struct {
	edits, lowers, failures, cuts, retries uint8
	// concurrent clusters of a stage; rollback where it fails.
	concurrent int32
	rollback   bool
	// apart: users ask for another content of one group, too.
	apart bool
}

var start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// input of the planner, with Confirmations beside those that users made.
func (l *limits) input(s *state, more ...plan.Confirmation) plan.Input {
	r := s.record
	in := plan.Input{
		UID: "u", Generation: 1 + int64(s.edits) + int64(s.lowers), Revision: s.asked.String(), HasStable: true, Record: r, Retry: s.retry, Now: start.Add(time.Duration(s.edits) * time.Minute),
		Strategy: l.strategy(s.lowered), Confirmations: append(s.confirmations(), more...),
	}
	for c := range s.members {
		m := &s.members[c]
		in.Clusters = append(in.Clusters, plan.Cluster{Name: clusterNames[c], Fresh: !m.silent, Ready: !m.silent})
		for g := range m.podSets {
			p := &m.podSets[g]
			if m.silent {
				p = &m.seen[g]
			}
			u := plan.Unit{Key: plan.Key{Cluster: clusterNames[c], Name: groupNames[g]}, Group: groupNames[g], Replicas: 1, Target: s.asked[g].String(), Sight: p.sight()}
			u.Before, u.Stable = u.Target, u.Target // as it is where nothing is recorded: it was installed
			if r != nil {
				u.Before, u.Stable = revisionOf(r.Revision)[g].String(), revisionOf(r.Stable)[g].String()
			}
			in.Units = append(in.Units, u)
		}
	}
	return in
}

func (l *limits) strategy(lowered bool) plan.Strategy {
	s := plan.Strategy{Concurrent: new(intstr.FromInt32(l.concurrent)), Rollback: l.rollback}
	if !lowered {
		s.Staging = plan.Staging{Order: groupNames[:], Confirm: true}
	}
	return s
}

// sight of a podSet as its worker reports it.
func (p *podSet) sight() plan.Sight {
	out := plan.Sight{Has: p.has.String(), Observed: p.observed, Version: "1"}
	out.Desired, out.Current = 1, 1
	if p.held {
		out.Grant = new(int32(0))
	}
	if p.up {
		out.Available = 1
	}
	if p.observed && p.runs == p.has {
		out.Updated = 1
	}
	if p.observed && p.bad && p.runs == p.has {
		out.Stalled = "it is bad"
	}
	return out
}

// confirmations that users made, each of the canary of a rollout.
func (s *state) confirmations() (out []plan.Confirmation) {
	for text := range strings.FieldsSeq(s.confirmed) {
		id, token, _ := strings.Cut(text, "=")
		out = append(out, plan.Confirmation{Rollout: id, Stage: groupNames[0], Token: token, By: "ann"})
	}
	return out
}

// confirm the gate of a rollout.
func (s *state) confirm(id, token string) {
	all := append(strings.Fields(s.confirmed), id+"="+token)
	slices.Sort(all)
	s.confirmed = strings.Join(slices.Compact(all), " ")
}
