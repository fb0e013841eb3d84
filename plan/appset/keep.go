package appset

import (
	"tkestack.io/tapp/plan/podset"
	"tkestack.io/tapp/plan/rollout"
)

// store the record, and the revision that it names, before anything of them is done.
func (c *computation) store(d *rollout.Decision) {
	ledger := &c.rolling.ledger
	c.keep = ledger.Keep(d.Record)
	ledger.Add(c.keep, c.rolling.revision, podset.HistoryOf(c.app, c.units))
	if c.rolling.recovered != nil {
		ledger.Add(c.keep, c.rolling.in.Stable, *c.rolling.recovered)
	}
}

// prune revisions that nothing names, but for as many as are to be kept.
func (c *computation) prune(d *rollout.Decision) {
	if d.State == rollout.Unknown { // so is which of them are needed
		return
	}
	ledger := &c.rolling.ledger
	c.obsolete = append(c.obsolete, ledger.Obsolete(d.Record, c.app.Spec.RevisionHistoryLimit)...)
}
