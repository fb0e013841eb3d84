// Package record is what the benchmark has measured, and the JSON file that keeps
// it: the report is made from the file alone, and a run that measures a part
// replaces that part only.
package record

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"
)

// Contenders.
const (
	Bare = "bare"
	// BareObjects writes what TApps, their history and their status need, too.
	BareObjects = "bare-objects"
	TApp        = "tapp"
	StatefulSet = "statefulset"
	// StatefulSetAlone is the StatefulSet controller in a process with no other one.
	StatefulSetAlone = "statefulset-alone"
	// KWOK alone starts pods that are there already.
	KWOK = "kwok"
)

// Contenders returns all of them, in the order in which they are measured.
func Contenders() []string {
	return []string{Bare, BareObjects, TApp, StatefulSet, StatefulSetAlone, KWOK}
}

// Phases, in the order in which a contender goes through them.
const (
	Create   = "create"
	InPlace  = "in-place"
	Rolling  = "rolling"
	Recreate = "recreate"
	// OneByOne updates one instance at a time, and then adds and removes one many times:
	// what counts is how soon the contender answers.
	OneByOne = "one-by-one"
	Restart  = "restart"
	Steady   = "steady"
	Zero     = "zero"
)

// Phases returns all of them in their order.
func Phases() []string {
	return []string{Create, InPlace, Rolling, OneByOne, Recreate, Restart, Steady, Zero}
}

// Key tells measurements apart.
type Key struct {
	Contender string `json:"contender"`
	Phase     string `json:"phase"`
	// Objects is the number of TApps or StatefulSets, Instances that of pods of each.
	Objects   int `json:"objects"`
	Instances int `json:"instances"`
	// Gate says that the pods have the readiness gate.
	Gate bool `json:"gate"`
}

// Pods of all objects together.
func (k Key) Pods() int { return k.Objects * k.Instances }

func (k Key) String() string {
	gate := "without the gate"
	if k.Gate {
		gate = "gated"
	}
	return fmt.Sprintf("%s: %s, %d x %d %s", k.Contender, k.Phase, k.Objects, k.Instances, gate)
}

// Run is one measurement of one phase. Durations are in seconds, and sizes in
// bytes.
type Run struct {
	Key
	Round int       `json:"round"`
	At    time.Time `json:"at"`
	// Version of TApp.
	Version string `json:"version"`
	// Boot tells the starts of machines apart, whose figures are not compared. Old
	// runs have none.
	Boot string `json:"boot,omitempty"`
	// Seconds from the user's request until the last pod is as it was asked for.
	// Of a restart: from the start of the process until all TApps have been worked
	// on once. Of the steady state: how long it was watched.
	Seconds float64 `json:"seconds"`
	// Ready is how long a restarted process took to fill its caches.
	Ready float64 `json:"ready,omitempty"`
	// FirstWrite is from the arrival of the user's request until that of the
	// contender's first write; LastWrite until that of its last one, which tells
	// the end in a status.
	FirstWrite float64 `json:"firstWrite,omitempty"`
	LastWrite  float64 `json:"lastWrite,omitempty"`
	// Writes of the contender by verb and kind, such as "patch pods/status".
	Writes map[string]int `json:"writes,omitempty"`
	// Conflicts are those of its writes that the API server refused with 409.
	Conflicts int `json:"conflicts,omitempty"`
	// BusiestStatus is the most writes of the status of one object within a second.
	BusiestStatus int `json:"busiestStatus,omitempty"`
	// StatusBytes is the size of all status writes on the wire, as the API server
	// counts it.
	StatusBytes int64 `json:"statusBytes,omitempty"`
	// Window is the time that CPU and the writes were counted for: until nothing
	// more was written.
	Window float64 `json:"window"`
	// CPU seconds of processes by name in the window.
	CPU map[string]float64 `json:"cpu,omitempty"`
	// Client is the CPU seconds of the benchmark itself until the pods were as asked for: of the
	// user's watch, and of what a bare client wrote.
	Client float64 `json:"client,omitempty"`
	// Before and Peak are the resident memory of the contender's process at the
	// begin, and the most that it had. Empty is what TApp's process had before
	// there was any pod.
	Before int64 `json:"before,omitempty"`
	Peak   int64 `json:"peak,omitempty"`
	Empty  int64 `json:"empty,omitempty"`
	// ClosedWatches are those that the API server closed because it could not get rid of
	// their events fast enough, whoever's they were: most of them when it is young.
	ClosedWatches int `json:"closedWatches,omitempty"`
	// Kubelet is how the simulated kubelet kept up.
	Kubelet *Kubelet `json:"kubelet,omitempty"`
	// Away is how long pods were out of service for an update in place with the gate.
	Away *Away `json:"away,omitempty"`
	// Answers is how soon the contender answered in the phase one-by-one, by step.
	Answers map[string]Answer `json:"answers,omitempty"`
}

// Away is how long it was from the first write of the contender to a pod's status, which
// closes its gate, until the last one, which opens it, in seconds.
type Away struct {
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
	Most   float64 `json:"most"`
}

// Steps of which it is told how soon a contender answers: what happened, and what it
// wrote then.
const (
	// Drained: the kubelet says that a pod whose gate was closed is not ready. The image is patched.
	Drained = "drained"
	// Back: the kubelet says that the container runs the new image. The gate is opened.
	Back = "back"
	// Gone: the kubelet removed a pod. It is created anew.
	Gone = "gone"
	// Ready: the kubelet says that a new instance is ready. The next one is drained or deleted.
	Ready = "ready"
	// Asked: the user changed the object. The contender writes for the first time.
	Asked = "asked"
)

// Steps returns all of them, in their order.
func Steps() []string { return []string{Drained, Back, Gone, Ready, Asked} }

// Answer is how long it was, in seconds, from when the API server had answered the
// write that a step begins with until it had answered the contender's.
type Answer struct {
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
	// Reaction is the median until the contender's request arrived: without what the API server took for it.
	Reaction float64 `json:"reaction"`
	Count    int     `json:"count"`
}

// Kubelet is how long the simulated kubelet took to answer the last change of each
// pod's binding or image with a status, in seconds. 0.05 of them are the start of
// a container.
type Kubelet struct {
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
	// Rate is how many statuses it wrote a second between its first and its last.
	Rate float64 `json:"rate"`
}

// Machine is where it was measured.
type Machine struct {
	CPU        string `json:"cpu"`
	Cores      int    `json:"cores"`
	Memory     int64  `json:"memory"`
	System     string `json:"system"`
	Go         string `json:"go"`
	Kubernetes string `json:"kubernetes"`
}

// Micro is one result of `go test -bench`.
type Micro struct {
	Name   string  `json:"name"`
	Nanos  float64 `json:"ns"`
	Bytes  float64 `json:"bytes"`
	Allocs float64 `json:"allocs"`
}

// Start is the name of the measurement of a process that only starts: its time, and the most
// that it had resident.
const Start = "Start"

// AddMicro puts results in the places of those of their names.
func (f *File) AddMicro(found []Micro) {
	for _, m := range found {
		if i := slices.IndexFunc(f.Micro, func(o Micro) bool { return o.Name == m.Name }); i >= 0 {
			f.Micro[i] = m
		} else {
			f.Micro = append(f.Micro, m)
		}
	}
}

// File is the whole of it.
type File struct {
	Machine Machine `json:"machine"`
	Micro   []Micro `json:"micro,omitempty"`
	Runs    []Run   `json:"runs"`
	Fleet   []Fleet `json:"fleet,omitempty"`
	// Failover of the controllers, by contender and by how their leader went.
	Failover []Failover `json:"failover,omitempty"`
}

// Load reads a file; one that does not exist is empty.
func Load(path string) (File, error) {
	var f File
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, fmt.Errorf("read the record: %w", err)
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return f, fmt.Errorf("read the record %s: %w", path, err)
	}
	return f, nil
}

// Save writes the file anew.
func (f File) Save(path string) error {
	data, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		return fmt.Errorf("write the record: %w", err)
	}
	next := path + ".next"
	if err := os.WriteFile(next, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the record: %w", err)
	}
	if err := os.Rename(next, path); err != nil {
		return fmt.Errorf("write the record: %w", err)
	}
	return nil
}

// Add puts a run in the place of the one with the same key and round, and of those
// with the same key that another machine measured.
func (f *File) Add(r Run) {
	f.Runs = append(slices.DeleteFunc(f.Runs, func(o Run) bool {
		return o.Key == r.Key && (o.Round == r.Round || o.Boot != r.Boot)
	}), r)
}

// Find returns the run of a key that took the median time of its rounds.
func (f *File) Find(k Key) (Run, bool) {
	var rounds []Run
	for _, r := range f.Runs {
		if r.Key == k {
			rounds = append(rounds, r)
		}
	}
	if len(rounds) == 0 {
		return Run{}, false
	}
	slices.SortFunc(rounds, func(a, b Run) int { return cmp.Compare(a.Seconds, b.Seconds) })
	return rounds[(len(rounds)-1)/2], true
}
