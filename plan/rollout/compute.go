package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
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
		old := c.r
		c.r = &Record{
			ID: NewID(c.in.UID, c.in.Revision, c.in.Generation), Revision: c.in.Revision, Stable: cmp.Or(old.Stable, c.in.Stable),
			Staging: c.in.Strategy.Staging, Retried: old.Retried, Budgeted: old.Budgeted, Bounds: old.Bounds,
			Installing: !c.in.HasStable,
			Returning:  c.in.HasStable && !slices.ContainsFunc(c.in.Units, func(u Unit) bool { return u.hasWork() }),
		}
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
	c.stages = stagesOf(&c.in.Strategy, &c.r.Staging, c.in.Clusters, c.in.Units)
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

// isAt says whether a unit has a content, and all of its instances are available.
func (c *computation) isAt(u *Unit, content string) bool {
	return c.cluster(u).Fresh && u.Has == content && u.Observed &&
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
	c.r.Failed = failed
}

// failure of a unit that is on its way to the target; empty: none.
func (c *computation) failure(u *Unit) string {
	if c.r.RollingBack || c.retried || c.cluster(u).Maintaining {
		return ""
	}
	fresh := c.cluster(u).Fresh
	if fresh && u.Has == u.Target && u.Observed && u.Stalled != "" {
		return u.Stalled
	}
	if c.in.Strategy.Paused || fresh && u.Grant != nil && *u.Grant == 0 { // the clock stands
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

// advanced says whether a unit came nearer since its progress was noted.
func (u *Unit) advanced() bool {
	return u.Updated > u.Progress.Updated || u.Available > u.Progress.Available
}

// passes says whether a rollout goes on without a unit: a human took its cluster out of
// service, or it failed, and not too much did.
func (c *computation) passes(i int) bool {
	return c.verdicts[i].Failed || c.cluster(&c.in.Units[i]).Maintaining
}

// advance the rollout to the stage that is current.
func (c *computation) advance() {
	c.halt()
	if c.r.Halted != "" {
		c.why = c.r.Halted
	}
	last := -1
	for k := range c.stages {
		if c.stages[k].Work {
			last = k
		}
	}
	well := true
	for k := range c.stages {
		stage := &c.stages[k]
		if !stage.Work {
			continue
		}
		c.count(k)
		record := c.r.stage(stage.Name)
		well = well && stage.Unfinished == 0
		if !record.Passed && c.current < 0 {
			if c.r.Halted != "" || !c.pass(k, record, well, k == last) {
				c.current = k
			}
		}
		stage.Record = *record
	}
	c.finish()
}

// count what is left of a stage.
func (c *computation) count(k int) {
	stage := &c.stages[k]
	for _, i := range stage.Units {
		if c.verdicts[i].Stage != k {
			continue
		}
		if c.verdicts[i].Failed {
			stage.Failed++
		}
		if !c.verdicts[i].Done && !c.passes(i) {
			stage.Unfinished++
		}
	}
}

// halt the rollout where too many clusters of a stage failed, or go on if they are well.
func (c *computation) halt() {
	if len(c.r.Failed) == 0 && !c.r.RollingBack {
		c.r.Halted = ""
	}
	if c.r.Halted != "" {
		return
	}
	for k := range c.stages {
		clusters, failed, first := map[string]bool{}, map[string]bool{}, -1
		for _, i := range c.stages[k].Units {
			if c.verdicts[i].Stage == k {
				clusters[c.in.Units[i].Cluster] = true
				if c.verdicts[i].Failed {
					failed[c.in.Units[i].Cluster] = true
					if first < 0 {
						first = i
					}
				}
			}
		}
		if most := scaled(c.in.Strategy.MaxFailures, len(clusters), false, 0); len(failed) > most {
			u := c.in.Units[first].Key
			n := slices.IndexFunc(c.r.Failed, func(f Failure) bool { return f.Key == u })
			c.r.Halted = fmt.Sprintf("%d of %d clusters of stage %s failed, and no more than %d may: %s: %s", len(failed), len(clusters), c.stages[k].Name, most, u, c.r.Failed[n].Why)
			c.r.RollingBack = c.in.Strategy.Rollback && c.in.HasStable
			return
		}
	}
}

// pass says whether the stage after this one may start, and notes what its record lacks.
// well: all that came before is.
func (c *computation) pass(k int, record *StageRecord, well, last bool) bool {
	stage, now := &c.stages[k], c.in.Now
	if record.Started == nil {
		record.Started = &now
	}
	if stage.Unfinished > 0 {
		if record.Finished == nil {
			record.Well = nil
		} else {
			c.why = fmt.Sprintf("stage %s was done, and %d of its units are not well any more", stage.Name, stage.Unfinished)
			c.open(stage, record, last)
		}
		return false
	}
	if record.Well == nil {
		record.Well = &now
	}
	if left := stage.soak - now.Sub(*record.Well); record.Finished == nil && left > 0 {
		c.why, c.wait = fmt.Sprintf("stage %s has to stay well until %s", stage.Name, record.Well.Add(stage.soak).UTC().Format(time.RFC3339)), left
		return false
	}
	if record.Finished == nil {
		record.Finished = &now
	}
	confirmed := c.open(stage, record, last)
	if !well {
		c.why = fmt.Sprintf("stage %s is done, and one before it is not well any more", stage.Name)
	}
	record.Passed = confirmed && well
	return record.Passed
}

// open the gate after a stage that is done, and say whether it is open.
func (c *computation) open(stage *Stage, record *StageRecord, last bool) bool {
	if !stage.Confirm || last || record.ConfirmedBy != "" {
		return true
	}
	stage.Token = Token(c.in.UID, c.r.ID, stage.Name, *record.Finished)
	for _, confirmation := range c.in.Confirmations {
		if confirmation.Rollout == c.r.ID && confirmation.Stage == stage.Name && confirmation.Token == stage.Token {
			stage.Token = ""
			record.ConfirmedBy = confirmation.By
			if record.ConfirmedBy == "" {
				record.ConfirmedBy = "unknown"
			}
			return true
		}
	}
	if c.why == "" {
		c.why = fmt.Sprintf("stage %s is done, and the next one waits for a Confirmation", stage.Name)
	}
	return false
}

// finish the rollout if all is where it is to be.
func (c *computation) finish() {
	all, passed := true, []Key(nil)
	for i := range c.verdicts {
		switch {
		case c.verdicts[i].Done:
		case c.r.RollingBack && c.in.Units[i].Stable == "": // there is nothing that it could return to
		case c.passes(i) && !c.r.RollingBack:
			passed = append(passed, c.in.Units[i].Key)
		default:
			all = false
		}
	}
	switch {
	case c.r.RollingBack:
		c.restored = all
	case all && c.current < 0 && c.r.Halted == "":
		c.r.Done, c.r.Stable, c.r.Passed = true, c.r.Revision, passed
		c.r.Installing, c.r.Returning, c.r.Failed = false, false, nil
	}
}
