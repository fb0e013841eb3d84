package record

import (
	"slices"
	"time"
)

// What is measured of a fleet.
const (
	// FleetPart is from a user's request for another size until the last member has it.
	FleetPart = "part"
	// FleetStatus is from the last member's status until the hub tells of it.
	FleetStatus = "status"
	// FleetStep is from the last status of one cluster's part in a rollout until the next
	// cluster's part is written.
	FleetStep = "step"
	// FleetOffline is from a member's last answer until the hub says that it is Offline.
	FleetOffline = "offline"
	// FleetManyMembers and FleetManyAppSets are from the start of the controller's process
	// until it has worked on all, with all members ready.
	FleetManyMembers = "restart-members"
	FleetManyAppSets = "restart-appsets"
)

// Fleet is one measurement of the controller of AppSets, with simulated members.
type Fleet struct {
	Name string    `json:"name"`
	At   time.Time `json:"at"`
	// Version of TApp.
	Version string `json:"version"`
	Members int    `json:"members"`
	// AppSets, each of which is in all members.
	AppSets int `json:"appSets"`
	Spread
	// Memory is the most that the controller's process had resident, in bytes.
	Memory int64 `json:"memory,omitempty"`
	// Load of the machine then, beside its cores: above them, others had a part of it.
	Load float64 `json:"load,omitempty"`
	// Writes to the members while nothing changed.
	Writes int `json:"writes,omitempty"`
}

// Spread of times, in seconds.
type Spread struct {
	Least  float64 `json:"least"`
	Median float64 `json:"median"`
	Most   float64 `json:"most"`
	Count  int     `json:"count"`
}

// SpreadOf times, of which there is one at least.
func SpreadOf(times []time.Duration) Spread {
	slices.Sort(times)
	n := len(times)
	return Spread{times[0].Seconds(), times[n/2].Seconds(), times[n-1].Seconds(), n}
}

// AddFleet puts a measurement in the place of the one of its name.
func (f *File) AddFleet(m Fleet) {
	f.Fleet = append(slices.DeleteFunc(f.Fleet, func(o Fleet) bool { return o.Name == m.Name }), m)
}

// FindFleet returns the measurement of a name.
func (f *File) FindFleet(name string) (Fleet, bool) {
	for _, m := range f.Fleet {
		if m.Name == name {
			return m, true
		}
	}
	return Fleet{}, false
}
