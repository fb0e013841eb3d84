package rollout

import (
	"fmt"
	"slices"
	"time"
)

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
	if !stage.Confirm || last && !record.Asked || record.ConfirmedBy != "" {
		return true
	}
	record.Asked = true
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
		c.r.Installing, c.r.Unproven, c.r.Returning, c.r.Failed = false, false, false, nil
		c.r.Holding = nil
	}
}
