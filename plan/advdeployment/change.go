package advdeployment

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/manifest"
)

// templateNext is the entry of templatePool that instances get when it is their turn.
const templateNext = "workload-next"

// mostHeld is the largest TApp whose instances change one by one: spec.templates has an entry
// for each of them. A larger one changes at once.
const mostHeld = 10_000

// change of a TApp from one content to another, instance by instance. Instances whose turn has
// not come keep the old content, even if their pods are recreated meanwhile.
//
//	spec.template      what the others have
//	spec.templatePool  the content that the TApp is to get, as templateNext
//	spec.templates     the instances whose turn has come
//
// When all have changed, spec.template has the new content, and the other two are removed.
type change struct {
	// moved are the ids whose turn has come, in ascending order.
	moved []int
}

// changeOf returns the change of a podSet; nil: its instances need no turns, or all have had
// theirs.
func (c *computation) changeOf(u *unit) *change {
	if u.From == nil || u.From.Hash == u.Hash || u.From.Content.Template == nil || u.have == nil || u.child.Kind != TApp {
		return nil
	}
	annotations := u.have.GetAnnotations()
	revision, from := annotations[v1beta1.AnnotationRevision], annotations[v1beta1.AnnotationFrom]
	begins := from == "" && revision == u.From.Hash
	if !begins && from != u.From.Hash || u.numbers.desired > mostHeld {
		return nil
	}
	t := turnsOf(u)
	if !begins && t.observed && len(t.waiting) == 0 && revision == u.Hash && t.updated >= t.desired {
		return nil // the last one has changed
	}
	moved := append(slices.Clone(t.moved), t.next(c.grantOf(u))...)
	slices.Sort(moved)
	return &change{moved}
}

// grantOf a podSet: how many of its instances may be out of service.
func (c *computation) grantOf(u *unit) int {
	limit := u.placed.MaxUnavailable
	switch {
	case c.d.Spec.UpdateStrategy.Paused || u.placed.Paused:
		return 0
	case limit == nil:
		return 1 // a TApp's own default
	}
	return int(*limit)
}

// turns of the instances of a TApp, as it was seen.
type turns struct {
	observed                    bool
	desired, updated, available int
	// moved ids, and waiting ones. Those without a running pod come first: to change them
	// costs nothing.
	moved, waiting []int
	// absent is how many of the waiting ones have no pod, and broken how many have a pod that
	// does not run.
	absent, broken int
}

func turnsOf(u *unit) *turns {
	o := u.have.Object
	number := func(field string) int {
		n, _, _ := unstructured.NestedInt64(o, "status", field)
		return int(n)
	}
	templates, _, _ := unstructured.NestedStringMap(o, "spec", "templates")
	wanted, _, _ := unstructured.NestedStringMap(o, "spec", "statuses")
	seen, _, _ := unstructured.NestedStringMap(o, "status", "statuses")
	generation, found, _ := unstructured.NestedInt64(o, "status", "observedGeneration")
	t := &turns{observed: found && generation >= u.have.GetGeneration(), updated: number("updatedReplicas"), available: number("availableReplicas")}
	start := int(u.ids().First)
	replicas, _, _ := unstructured.NestedInt64(o, "spec", "replicas")
	var well []int
	for id := start; id < start+int(replicas); id++ {
		name := strconv.Itoa(id)
		stopped := wanted[name] == "Killed"
		if !stopped {
			t.desired++
		}
		switch own := templates[name]; {
		case own == templateNext:
			t.moved = append(t.moved, id)
		case own != "" || stopped: // its template or status is the user's choice
		case seen[name] == "Running":
			well = append(well, id)
		default:
			t.broken++
			if seen[name] == "NotCreated" || seen[name] == "" {
				t.absent++
			}
			t.waiting = append(t.waiting, id)
		}
	}
	t.waiting = append(t.waiting, well...)
	return t
}

// next are the instances whose turn comes now: at most as many as the grant, less those that
// are still changing. Running ones come only while fewer instances than the grant are
// unavailable; for others that makes no difference.
func (t *turns) next(grant int) []int {
	room := grant - max(0, t.desired-t.updated-t.absent)
	if !t.observed || grant <= 0 || room <= 0 {
		return nil
	}
	n := min(room, t.broken)
	n += max(0, min(room-n, grant-max(0, t.desired-t.available), len(t.waiting)-t.broken))
	return t.waiting[:n]
}

// apply puts the change into the manifest of the TApp, which was made with the new content for
// all instances.
func (ch *change) apply(u *unit, made map[string]any) {
	spec, _ := made["spec"].(map[string]any)
	spec["templatePool"] = map[string]any{templateNext: spec["template"]}
	spec["template"] = bare(manifest.Plain(u.From.Content.Template))
	templates := make(map[string]any, len(ch.moved))
	for _, id := range ch.moved {
		templates[strconv.Itoa(id)] = templateNext
	}
	if len(templates) > 0 {
		spec["templates"] = templates
	}
	strategy, _ := spec["updateStrategy"].(map[string]any)
	if strategy == nil {
		strategy = map[string]any{}
		spec["updateStrategy"] = strategy
	}
	strategy["template"] = templateNext
	metadata, _ := made["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	annotations[v1beta1.AnnotationFrom] = u.From.Hash
}

// changed is how many instances of a TApp have the new content while a change is under way: of
// the updated ones, those whose turn has come. The others are up to date with the old content.
func changed(u *unit) int32 {
	t := turnsOf(u)
	return int32(max(0, len(t.moved)-max(0, t.desired-t.updated)))
}
