package rollout

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Record is what a rollout remembers beside what can be seen. It is stored where those
// who edit specs cannot, since it says which gates are open.
type Record struct {
	// ID is never used again: a hash of what is rolled out, and the generation at which
	// that began.
	ID string `json:"id"`
	// Revision names the targets. It follows clusters that join and leave.
	Revision string `json:"revision"`
	// Stable is the last revision that all units reached, but for those that were passed.
	Stable string `json:"stable,omitempty"`
	// Staging as it was at the beginning, and which stages have come how far.
	Staging Staging       `json:"staging,omitzero"`
	Stages  []StageRecord `json:"stages,omitempty"`
	// Installing, Returning, RollingBack and Done as in State.
	Installing  bool `json:"installing,omitempty"`
	Returning   bool `json:"returning,omitempty"`
	RollingBack bool `json:"rollingBack,omitempty"`
	Done        bool `json:"done,omitempty"`
	// Unproven: what is stable is what an installation was to be of which some ran, and which was
	// given up before it was done.
	Unproven bool `json:"unproven,omitempty"`
	// Holding are units that hold the budget while they wait for their turn.
	Holding []Holder `json:"holding,omitempty"`
	// Halted says why; empty: it did not.
	Halted string `json:"halted,omitempty"`
	// Retried is the last request for another try that was followed.
	Retried string `json:"retried,omitempty"`
	// Failed units and why, in order, and units that were Passed.
	Failed []Failure `json:"failed,omitempty"`
	Passed []Key     `json:"passed,omitempty"`
	// Budgeted: Bounds are those of all units, in order; a unit that is not among them has
	// the bound 0.
	Budgeted bool    `json:"budgeted,omitempty"`
	Bounds   []Bound `json:"bounds,omitempty"`
}

// StageRecord is how far a stage has come.
type StageRecord struct {
	Name string `json:"name"`
	// Started; Well: since when all of it is done; Finished: it was so for long enough.
	Started  *time.Time `json:"started,omitempty"`
	Well     *time.Time `json:"well,omitempty"`
	Finished *time.Time `json:"finished,omitempty"`
	// Asked: its gate has waited for a Confirmation.
	Asked bool `json:"asked,omitempty"`
	// Passed: the next stage may start. By whose Confirmation, if it had a gate.
	Passed      bool   `json:"passed,omitempty"`
	ConfirmedBy string `json:"confirmedBy,omitempty"`
}

// Failure of a unit.
type Failure struct {
	Key
	Why string `json:"why"`
}

// Bound of a unit, and the version of the object that a reserved write is for; empty: none
// is under way.
type Bound struct {
	Key
	Bound   int32  `json:"bound"`
	Version string `json:"version,omitempty"`
}

// clone of a record; of none an empty one.
func (r *Record) clone() *Record {
	out := &Record{}
	if r != nil {
		text, _ := json.Marshal(r) // it came from JSON
		_ = json.Unmarshal(text, out)
	}
	return out
}

// Equal says whether two records say the same.
func (r *Record) Equal(other *Record) bool {
	a, _ := json.Marshal(r)
	b, _ := json.Marshal(other)
	return string(a) == string(b)
}

// NewID of a rollout that begins at this generation.
func NewID(uid, revision string, generation int64) string {
	sum := sha256.Sum256([]byte(uid + "/" + revision))
	return hex.EncodeToString(sum[:5]) + "-" + strconv.FormatInt(generation, 10)
}

// Token of the gate after a stage, which nobody knows before the stage is done.
func Token(uid, id, stage string, finished time.Time) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%s/%d", uid, id, stage, finished.Unix()))
	return hex.EncodeToString(sum[:10])
}

// stage of a name; it is added if there is none.
func (r *Record) stage(name string) *StageRecord {
	for i := range r.Stages {
		if r.Stages[i].Name == name {
			return &r.Stages[i]
		}
	}
	r.Stages = append(r.Stages, StageRecord{Name: name})
	return &r.Stages[len(r.Stages)-1]
}

// isUnderWay says whether a stage has begun and has not passed.
func (r *Record) isUnderWay(name string) bool {
	return slices.ContainsFunc(r.Stages, func(s StageRecord) bool { return s.Name == name && s.Started != nil && !s.Passed })
}

// boundOf a unit; nil: it has none.
func (r *Record) boundOf(k Key) *Bound {
	i, found := slices.BinarySearchFunc(r.Bounds, k, func(b Bound, k Key) int { return b.compare(k) })
	if !found {
		return nil
	}
	return &r.Bounds[i]
}

// mayArrive says whether the write that the bound is of may arrive yet: the object is not known
// to be another version than it was reserved for.
func (b *Bound) mayArrive(u *Unit) bool {
	return b.Version != "" && (u.Unseen || !isNewer(u.Version, b.Version))
}

func (k Key) compare(other Key) int {
	return cmp.Or(strings.Compare(k.Cluster, other.Cluster), strings.Compare(k.Name, other.Name))
}

// String is the unit as sentences have it.
func (k Key) String() string {
	if k.Cluster == "" { // there is only one
		return k.Name
	}
	return k.Cluster + "/" + k.Name
}

// isNewer says whether a version of an object came after another. Versions that are no
// numbers are newer if they differ.
func isNewer(version, than string) bool {
	a, errA := strconv.ParseUint(version, 10, 64)
	b, errB := strconv.ParseUint(than, 10, 64)
	if errA != nil || errB != nil {
		return version != than
	}
	return a > b
}
