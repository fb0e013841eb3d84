package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"tkestack.io/tapp/plan/message"
)

// computation is a decision in the making.
type computation struct {
	in       Input
	r        *Record
	clusters map[string]*Cluster
	stages   []Stage
	verdicts []Verdict
	current  int // stage; -1: none
	retried  bool
	restored bool // returned after it failed
	why      string
	wait     time.Duration

	budget  *int32
	charged int32
}

func newComputation(in Input) *computation {
	c := &computation{in: in, r: in.Record.clone(), clusters: map[string]*Cluster{}, verdicts: make([]Verdict, len(in.Units)), current: -1}
	c.in.Now = in.Now.Truncate(time.Second).UTC()
	for i := range in.Clusters {
		c.clusters[in.Clusters[i].Name] = &in.Clusters[i]
	}
	return c
}

// cluster of a unit. One that is not listed is silent.
func (c *computation) cluster(u *Unit) *Cluster {
	if cluster := c.clusters[u.Cluster]; cluster != nil {
		return cluster
	}
	return &Cluster{Name: u.Cluster}
}

// begin a rollout if another content is asked for, or go on with the recorded one.
func (c *computation) begin() {
	if c.isNew() {
		c.r = c.newRecord(c.r)
	}
	if c.r.Revision != c.in.Revision { // clusters joined, or left
		c.r.Revision = c.in.Revision
		c.r.Done = c.r.Done && !slices.ContainsFunc(c.in.Units, func(u Unit) bool { return u.Has != u.Target })
		if c.r.Done {
			c.r.Stable = c.r.Revision
		}
	}
	if id, _, _ := strings.Cut(c.in.Retry, "/"); id == c.r.ID && c.in.Retry != c.r.Retried {
		c.retried = true
		c.r.Retried, c.r.Halted, c.r.Failed, c.r.RollingBack = c.in.Retry, "", nil, false
	}
	if c.r.Installing {
		c.installAll()
	}
	c.stages = stagesOf(&c.in.Strategy, c.r, c.in.Clusters, c.in.Units)
	for i := range c.verdicts {
		c.verdicts[i].Stage = -1
	}
	for k := range c.stages {
		for _, i := range c.stages[k].Units {
			if c.in.Units[i].hasWork() {
				c.verdicts[i].Stage = k
			}
		}
	}
}

// newRecord of a rollout that follows another one. An installation of which nothing ever ran goes
// on as one with what is asked for now: there is nothing that stages and gates would protect.
func (c *computation) newRecord(old *Record) *Record {
	r := &Record{
		ID: NewID(c.in.UID, c.in.Revision, c.in.Generation), Revision: c.in.Revision,
		Staging: c.in.Strategy.Staging, Retried: old.Retried, Budgeted: old.Budgeted, Bounds: old.Bounds,
	}
	if !c.in.HasStable || old.Installing && !c.in.Ran && !slices.ContainsFunc(c.in.Units, c.mayRun) {
		r.Installing = true
		return r
	}
	r.Stable, r.Unproven = cmp.Or(old.Stable, c.in.Stable), old.Unproven || old.Installing
	r.Returning = !slices.ContainsFunc(c.in.Units, func(u Unit) bool { return u.hasWork() })
	return r
}

// mayRun says whether instances of a unit may be available.
func (c *computation) mayRun(u Unit) bool {
	return u.Unseen || u.Has != "" && (u.Available > 0 || !c.cluster(&u).Fresh)
}

// installAll units without stages, also those that join before the installation is done: what
// the others have by then is not stable yet.
func (c *computation) installAll() {
	c.in.Units = slices.Clone(c.in.Units)
	for i := range c.in.Units {
		c.in.Units[i].Stable = c.in.Units[i].Target
	}
}

// isNew says whether what is asked for is not what the recorded rollout is about. Units
// that join or leave are no other rollout.
func (c *computation) isNew() bool {
	if c.in.Record == nil {
		return true
	}
	known := false
	for i := range c.in.Units {
		u := &c.in.Units[i]
		known = known || u.Before != ""
		if u.Before != "" && u.Target != u.Before || c.r.Done && u.hasWork() {
			return true
		}
	}
	return !known && len(c.in.Units) > 0
}

// goal is the content that a unit is to have in the end.
func (c *computation) goal(u *Unit) string {
	if c.r.RollingBack && u.Stable != "" {
		return u.Stable
	}
	return u.Target
}

// isAt says whether a unit has a content, all of its instances are available, and nothing of it
// is broken.
func (c *computation) isAt(u *Unit, content string) bool {
	return c.cluster(u).Fresh && u.Has == content && u.Observed && !u.Broken &&
		u.Updated >= u.Desired && u.Available >= u.Desired && u.Current <= u.Desired
}

// judge which units are done, and which failed.
func (c *computation) judge() {
	var failed []Failure
	for i := range c.in.Units {
		u, v := &c.in.Units[i], &c.verdicts[i]
		v.Done = c.isAt(u, c.goal(u))
		if v.Done || v.Stage < 0 || c.r.RollingBack && v.Done {
			continue
		}
		why := c.failure(u)
		if n := slices.IndexFunc(c.r.Failed, func(f Failure) bool { return f.Key == u.Key }); n >= 0 {
			why = c.r.Failed[n].Why
		}
		if why != "" {
			v.Failed = true
			failed = append(failed, Failure{u.Key, why})
		}
	}
	c.r.Failed = bounded(c.stillFailed(failed))
}

// stillFailed are the failures of a rollout, in order. Those for which it halted stay where no
// instance is left to show that they are gone: to scale down what failed, or to remove it, is no
// reason to go on with the others.
func (c *computation) stillFailed(now []Failure) []Failure {
	if c.r.Halted == "" || c.r.RollingBack {
		return now
	}
	for _, f := range c.r.Failed {
		n := slices.IndexFunc(c.in.Units, func(u Unit) bool { return u.Key == f.Key })
		if n < 0 || c.in.Units[n].Replicas == 0 && c.in.Units[n].Target != c.in.Units[n].Stable {
			now = append(now, f)
		}
	}
	return now
}

const (
	// mostWhy is how long the reason of one failure may be, in bytes, and mostTold those of all
	// together, down to leastWhy for each: a record that is too large could not be stored, and
	// the rollout would go on.
	mostWhy, leastWhy = 256, 40
	mostTold          = 32 << 10
)

func bounded(failed []Failure) []Failure {
	most := min(mostWhy, max(leastWhy, mostTold/max(1, len(failed))))
	for i := range failed {
		failed[i].Why = message.Cut(failed[i].Why, most)
	}
	return failed
}

// failure of a unit that is on its way to the target; empty: none.
func (c *computation) failure(u *Unit) string {
	if c.r.RollingBack || c.retried || c.cluster(u).Maintaining {
		return ""
	}
	fresh := c.cluster(u).Fresh
	held := fresh && u.Grant != nil && *u.Grant == 0 // as since it halted: what it says is about the try before
	if fresh && u.Has == u.Target && u.isStalled() && !held {
		return u.Stalled
	}
	if c.in.Strategy.Paused || held { // the clock stands
		return ""
	}
	p := &u.Progress
	if deadline := c.in.Strategy.Deadline; deadline > 0 && !p.At.IsZero() && c.in.Now.Sub(p.At) >= deadline && !u.advanced() {
		if !fresh {
			return fmt.Sprintf("its cluster has been silent for %s", deadline)
		}
		return fmt.Sprintf("it made no progress for %s: %d of %d instances have the content, and %d are available", deadline, u.Updated, u.Desired, u.Available)
	}
	return ""
}

// isStalled says whether a unit cannot go on without help with what it has.
func (u *Unit) isStalled() bool { return u.Stalled != "" && (u.Observed || u.Broken) }

// advanced says whether a unit came nearer since its progress was noted.
func (u *Unit) advanced() bool {
	return u.Updated > u.Progress.Updated || u.Available > u.Progress.Available
}
