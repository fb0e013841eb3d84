// Package refusal has what the API server refuses of the writes for instances: which
// operations there are, the reasons that they are told by, and which is told first. A write
// is refused by a quota, a policy, a webhook, a missing right or the validation. What the
// next try may change without anybody's doing, such as a timeout, is no refusal.
package refusal

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/ids"
	"tkestack.io/tapp/plan/message"
)

// The reasons of the condition ReplicaFailure, of instances and of events, in the order in
// which they are told: an instance without a pod is worse off than one that keeps an old one.
const (
	FailedCreate = "FailedCreate"
	FailedDelete = "FailedDelete"
	FailedUpdate = "FailedUpdate"
)

// What is refused in a dry run, by the names that the planner has for it: it is not tried in
// earnest, and told for as long as plans find it so.
const (
	TryUpdate = "TryUpdate"
	TryCreate = "TryCreate"
)

// operation that is done for an instance, by the name that the planner has for it.
type operation struct {
	name, reason string
	// of and its are the verb for people, as in "cannot delete the pod of instance 3", and in
	// "cannot delete its pod".
	of, its string
	// also are the writes that it makes beside its own.
	also []string
}

// operations are all that can be refused of what is done for an instance.
var operations = []operation{
	{"Create", FailedCreate, "create", "create its pod", nil},
	{"Replace", FailedCreate, "replace the ended pod of", "replace its ended pod", []string{"Create", "Delete"}},
	{"CreateClaim", FailedCreate, "create a claim of", "create a claim of it", []string{"UpdateClaim"}},
	{"Delete", FailedDelete, "delete the pod of", "delete its pod", nil},
	{"ForceDelete", FailedDelete, "delete by force the pod of", "delete its pod by force", nil},
	{"DeleteClaim", FailedDelete, "delete a claim of", "delete a claim of it", nil},
	{"Drain", FailedUpdate, "drain", "drain it", nil},
	{"UpdateInPlace", FailedUpdate, "update in place", "update it in place", nil},
	{"Resize", FailedUpdate, "resize", "resize it", nil},
	{"Undrain", FailedUpdate, "undrain", "undrain it", nil},
	{"Relabel", FailedUpdate, "relabel", "relabel it", nil},
	{"UpdateClaim", FailedUpdate, "update a claim of", "update a claim of it", nil},
	{"Adopt", FailedUpdate, "adopt the pod of", "adopt its pod", nil},
	{TryUpdate, FailedUpdate, "begin the update in place of", "begin its update in place", nil},
	{TryCreate, FailedCreate, "begin the recreation of", "begin its recreation", nil},
	{"Release", FailedUpdate, "release the pod of", "release its pod", nil},
}

func find(name string) *operation {
	for i := range operations {
		if operations[i].name == name {
			return &operations[i]
		}
	}
	return nil
}

// ReasonOf an operation that is refused; empty: it is none of an instance.
func ReasonOf(op string) string {
	if o := find(op); o != nil {
		return o.reason
	}
	return ""
}

// VerbOf an operation that is refused, as in "cannot delete the pod of instance 3"; empty: it is none of an instance.
func VerbOf(op string) string {
	if o := find(op); o != nil {
		return o.of
	}
	return ""
}

// Parts are an operation and the writes that it makes beside its own.
func Parts(op string) []string {
	if o := find(op); o != nil {
		return append([]string{op}, o.also...)
	}
	return []string{op}
}

// Key is what is refused: an operation for an instance.
type Key struct {
	ID int
	Op string
}

// before says whether a refusal is told before another one.
func (k Key) before(other Key) bool {
	return cmp.Or(cmp.Compare(rank(k.Op), rank(other.Op)), cmp.Compare(k.ID, other.ID), cmp.Compare(k.Op, other.Op)) < 0
}

// rank of an operation: that of its reason.
func rank(op string) int {
	switch ReasonOf(op) {
	case FailedCreate:
		return 0
	case FailedDelete:
		return 1
	}
	return 2
}

// Refusal is how an operation was refused.
type Refusal struct {
	// Words are the API server's, of the last try.
	Words string
	// Since is the first try in a row that was refused.
	Since time.Time
}

// Why an instance is not where the spec wants it.
func (k Key) Why(r Refusal) string {
	its := k.Op
	if o := find(k.Op); o != nil {
		its = o.its
	}
	return verb + its + ": " + r.Words
}

// Set is what is refused now. A nil one says that nothing has been tried yet.
type Set map[Key]Refusal

// Note a write that was refused. Of one that was so before, the time stays.
func (s Set) Note(k Key, words string, now time.Time) {
	since := now
	if was, ok := s[k]; ok {
		since = was.Since
	}
	s[k] = Refusal{Words: message.Bound(words), Since: since}
}

// Passed notes that an operation came through, with all that it writes.
func (s Set) Passed(id int, op string) {
	for _, part := range Parts(op) {
		delete(s, Key{ID: id, Op: part})
	}
}

// First is what is told: the lowest id of the first reason that there is. It is false when
// nothing is refused.
func (s Set) First() (first Key, ok bool) {
	for k := range s {
		if !ok || k.before(first) {
			first, ok = k, true
		}
	}
	return first, ok
}

// PerInstance is what is told of each instance that is refused something.
func (s Set) PerInstance() map[int]Key {
	out := map[int]Key{}
	for k := range s {
		if first, ok := out[k.ID]; !ok || k.before(first) {
			out[k.ID] = k
		}
	}
	return out
}

const (
	verb     = "cannot "
	instance = " instance "
	since    = " since "
)

// Told is the reason and the message of the condition; empty: nothing is refused.
func (s Set) Told() (reason, text string) {
	k, ok := s.First()
	if !ok {
		return "", ""
	}
	o := find(k.Op)
	if o == nil {
		return "", ""
	}
	others := ""
	switch n := len(s.PerInstance()) - 1; {
	case n == 1:
		others = " (and 1 other instance)"
	case n > 1:
		others = fmt.Sprintf(" (and %d other instances)", n)
	}
	return o.reason, message.Bound(verb + o.of + instance + strconv.Itoa(k.ID) + since + s[k].Since.UTC().Format(time.RFC3339) + others + ": " + s[k].Words)
}

// Stored is what a condition, as stored, tells: for who has tried nothing himself, such as a
// new leader, a preview or the plugin.
func Stored(conditions []metav1.Condition) Set {
	out := Set{}
	c := meta.FindStatusCondition(conditions, tappv1.ConditionReplicaFailure)
	if c == nil || c.Status != metav1.ConditionTrue {
		return out
	}
	head, words, _ := strings.Cut(c.Message, ": ")
	head, at, _ := strings.Cut(head, since)
	at, _, _ = strings.Cut(at, " (and ")
	began, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return out // as an earlier version wrote it: the next try tells
	}
	for i := range operations {
		o := &operations[i]
		id, ok := ids.Parse(strings.TrimPrefix(head, verb+o.of+instance))
		if ok && o.reason == c.Reason {
			out[Key{ID: id, Op: o.name}] = Refusal{Words: words, Since: began}
		}
	}
	return out
}
