// Package effect has the words for what a rollout does to the instances of a TApp.
package effect

import (
	"cmp"
	"fmt"
	"slices"

	"tkestack.io/tapp/plan/ids"
)

// Effect is what a rollout does to an instance, from now to its end.
type Effect string

// The effects, in the order in which they are told of.
const (
	// UpdateInPlace: the pod stays, and some of its containers restart.
	UpdateInPlace Effect = "UpdateInPlace"
	// Recreate: the pod is deleted, and another one created.
	Recreate Effect = "Recreate"
	// Resize: the pod's resources change, nothing restarts.
	Resize Effect = "Resize"
	// Relabel: the pod's labels and annotations change, nothing restarts.
	Relabel Effect = "Relabel"
	// Kill: the pod goes because spec.statuses stops the instance.
	Kill Effect = "Kill"
	// ScaleDown: the pod goes because its id is out of range.
	ScaleDown Effect = "ScaleDown"
	// Create: the instance gets a pod.
	Create Effect = "Create"
	// Hold: the pod stays as it is although it does not follow its template.
	Hold Effect = "Hold"
	// Wait: the pod would go, and stays since it keeps a claim that is being deleted.
	Wait Effect = "Wait"
)

// effectWords are the words for one instance and for several.
type effectWords struct {
	Effect    Effect
	one, many string
}

// effects in the order in which they are told of.
var effects = []effectWords{
	{UpdateInPlace, "is updated in place", "are updated in place"},
	{Recreate, "is recreated", "are recreated"},
	{Resize, "gets other resources without a restart", "get other resources without a restart"},
	{Relabel, "gets other labels or annotations without a restart", "get other labels or annotations without a restart"},
	{Kill, "is killed", "are killed"},
	{ScaleDown, "is removed", "are removed"},
	{Create, "is created", "are created"},
	{Hold, "stays on its old template", "stay on their old template"},
	{Wait, "waits", "wait"},
}

// All effects, in the order in which they are told of.
func All() []Effect {
	out := make([]Effect, len(effects))
	for i := range effects {
		out[i] = effects[i].Effect
	}
	return out
}

// Change is one effect, for one reason, on the instances that share both.
type Change struct {
	Effect Effect
	// IDs of the instances, ascending.
	IDs []int
	// Why is the sentence that the actions will carry.
	Why string
}

// String is a sentence such as "2 instances are updated in place (0,2): image of
// web from web:1 to web:2".
func (c Change) String() string {
	return fmt.Sprintf("%s (%s): %s", c.Effect.Words(len(c.IDs)), ids.Ranges(c.IDs), c.Why)
}

// Words for the effect on a number of instances, such as "2 instances are recreated".
func (e Effect) Words(n int) string {
	noun, words := "instances", ""
	for _, known := range effects {
		if known.Effect == e {
			words = known.many
			if n == 1 {
				noun, words = "instance", known.one
			}
		}
	}
	return fmt.Sprintf("%d %s %s", n, noun, words)
}

// Order changes by their effects, then by their first instance.
func Order(changes []Change) {
	slices.SortStableFunc(changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(rank(a.Effect), rank(b.Effect)), cmp.Compare(a.IDs[0], b.IDs[0]))
	})
}

func rank(e Effect) int {
	return slices.IndexFunc(effects, func(x effectWords) bool { return x.Effect == e })
}
