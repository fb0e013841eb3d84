package appset

import (
	"tkestack.io/tapp/plan/podset"
	"tkestack.io/tapp/plan/rollout"
)

// store notes what is to be stored before anything is written to clusters: the record of
// the rollout, and the revisions that it names.
func (c *computation) store(d *rollout.Decision) {
	ledger := &c.rolling.ledger
	c.keep = ledger.Keep(d.Record)
	ledger.Add(c.keep, c.rolling.revision, podset.HistoryOf(c.app, c.units))
	if c.rolling.recovered != nil {
		ledger.Add(c.keep, c.rolling.in.Stable, *c.rolling.recovered)
	}
}

// prune notes the revisions to delete: the record does not name them, and they are more
// than spec.revisionHistoryLimit.
func (c *computation) prune(d *rollout.Decision) {
	if d.State == rollout.Unknown { // which revisions are needed is not known either
		return
	}
	ledger := &c.rolling.ledger
	c.obsolete = append(c.obsolete, ledger.Obsolete(d.Record, c.app.Spec.RevisionHistoryLimit)...)
}
