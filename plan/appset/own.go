package appset

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/message"
)

func (c *computation) deleting() bool { return c.app.DeletionTimestamp != nil }

// restored says whether some part was written for a later generation than the AppSet has.
// Then the hub was restored from a backup, and to write its older spec would roll the fleet
// back: nothing is written until a human accepts that generation.
func (c *computation) restored() bool {
	accepted, _ := strconv.ParseInt(c.app.Annotations[v1beta1.AnnotationAcceptGeneration], 10, 64)
	former, backedUp := restoredFrom(c.app)
	newest, where, why := int64(0), "", ""
	for _, s := range c.sites {
		if !s.ours || !c.isSelf(uidOf(s.Part)) {
			continue
		}
		known, words := c.app.Generation, fmt.Sprintf("this AppSet is of generation %d: the hub seems to have been restored from a backup", c.app.Generation)
		if uidOf(s.Part) == former {
			known, words = backedUp, fmt.Sprintf("this AppSet was restored from a backup of generation %d", backedUp)
		}
		if generation, _ := strconv.ParseInt(s.Part.Annotations[v1beta1.AnnotationAppSetGeneration], 10, 64); generation > max(known, accepted, newest) {
			newest, where, why = generation, s.title, words
		}
	}
	if where == "" {
		return false
	}
	c.frozen = true
	c.stall(ReasonHubRestored, "cluster %s has the part of generation %d, and %s. Nothing is written. "+
		"Bring the AppSet up to date, and then annotate it with %s=%d", where, newest, why, v1beta1.AnnotationAcceptGeneration, newest)
	return true
}

// restoredFrom returns the UID and generation that the AppSet had in the backup that it was
// restored from; empty: it was not restored.
func restoredFrom(a *v1beta1.AppSet) (types.UID, int64) {
	uid, number, _ := strings.Cut(a.Annotations[v1beta1.AnnotationRestoredFrom], "/")
	generation, _ := strconv.ParseInt(number, 10, 64)
	return types.UID(uid), generation
}

// isSelf says whether a UID is that of this AppSet, also before it was restored.
func (c *computation) isSelf(uid types.UID) bool {
	former, _ := restoredFrom(c.app)
	return uid != "" && (uid == c.app.UID || uid == former)
}

// invalid says whether the spec cannot be carried out. What runs is left as it is.
func (c *computation) invalid() bool {
	if len(c.problems) == 0 {
		return false
	}
	c.frozen = true
	lines := make([]string, 0, len(c.problems))
	for _, p := range c.problems {
		lines = append(lines, p.Field+": "+p.Why)
	}
	c.stall(v1beta1.ReasonInvalid, "%s", message.Join(lines, "; "))
	return true
}

// remember plans the writes to the AppSet itself. The finalizer, and an annotation with all
// clusters that may have a part, are written before any part (Own). Clusters that no longer
// have a part are taken out of the annotation after all other writes (Forget).
func (c *computation) remember() {
	now, gone := map[string]types.UID{}, map[string]types.UID{}
	own := &Own{Finalizers: c.app.Finalizers, Why: "the clusters that have a part are remembered before they have it"}
	for _, s := range c.sites {
		switch {
		case s.listed && s.spec != nil && (s.remembered || s.ours || s.writable() && !s.held), s.ours, s.remembered && !s.empty() && !c.buried(s):
			now[s.Name] = s.was
			if s.was == "" && s.State != v1beta1.ClusterMistaken {
				now[s.Name] = s.UID
			}
		case s.remembered:
			gone[s.Name] = s.was
		}
	}
	if len(now) > 0 && !slices.Contains(own.Finalizers, v1beta1.Finalizer) {
		own.Finalizers = append(slices.Clone(own.Finalizers), v1beta1.Finalizer)
	}
	if slices.Contains(own.Finalizers, v1beta1.Finalizer) {
		own.Finalizers = slices.DeleteFunc(slices.Clone(own.Finalizers), func(f string) bool { return f == v1beta1.LegacyFinalizer })
	}
	if len(gone) > 0 {
		forget := *own
		forget.Clusters, forget.Gone, forget.Why = remembering(now), slices.Sorted(maps.Keys(gone)), "clusters that have no part any more are forgotten"
		c.forget = &forget
	}
	maps.Copy(now, gone)
	own.Clusters = remembering(now)
	if slices.Equal(own.Finalizers, c.app.Finalizers) && own.Clusters == c.app.Annotations[v1beta1.AnnotationClusters] {
		return
	}
	c.own = own
}

func remembering(clusters map[string]types.UID) string {
	out := make([]string, 0, len(clusters))
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		out = append(out, name+"="+string(clusters[name]))
	}
	return strings.Join(out, ",")
}
