package record

import (
	"slices"
	"time"
)

// Failover is how long it was from the end of a leader until another replica had seen what was changed at that moment.
type Failover struct {
	Contender string `json:"contender"`
	// Killed says that the leader was killed; else it was told to end.
	Killed bool      `json:"killed"`
	At     time.Time `json:"at"`
	// Version of TApp.
	Version string `json:"version"`
	Spread
	// Load of the machine then, beside its cores: above them, others had a part of it.
	Load float64 `json:"load,omitempty"`
}

// AddFailover puts a measurement in the place of the same one.
func (f *File) AddFailover(m Failover) {
	f.Failover = append(slices.DeleteFunc(f.Failover, func(o Failover) bool { return o.Contender == m.Contender && o.Killed == m.Killed }), m)
}
