package claim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Annotations that Argo CD reads: lists with commas, of which the first value of an option
// counts.
const (
	argoSync    = "argocd.argoproj.io/sync-options"
	argoCompare = "argocd.argoproj.io/compare-options"
)

// Spare returns the annotations that a claim lacks for Argo CD to leave it alone, with what
// it has there already; nil: it lacks none, or needs none. With the label of an Application,
// without an owner and in no manifest a claim is a stray for Argo CD, which deletes those. It spares
// only those of a StatefulSet. What somebody else made by hand is his to annotate.
//
//	sync-options     Prune=false, Delete=false   unless the claim has another value of that option
//	compare-options  IgnoreExtraneous
func (w *Workload) Spare(c *corev1.PersistentVolumeClaim, v Verdict) map[string]string {
	if _, tracked := c.Labels[w.Tracking]; !tracked || w.Tracking == "" || len(c.OwnerReferences) > 0 || v.Found || v.Use != Ours || c.DeletionTimestamp != nil {
		return nil
	}
	out := map[string]string{}
	lacks := func(annotation string, options ...string) {
		has := c.Annotations[annotation]
		for _, option := range options {
			if !hasOption(has, option) {
				has = strings.TrimPrefix(strings.TrimRight(has, ", ")+","+option, ",")
			}
		}
		if has != c.Annotations[annotation] {
			out[annotation] = has
		}
	}
	lacks(argoSync, "Prune=false", "Delete=false")
	lacks(argoCompare, "IgnoreExtraneous")
	if len(out) == 0 {
		return nil
	}
	return out
}

// hasOption says whether a list has the option, whatever its value.
func hasOption(list, option string) bool {
	key, _, valued := strings.Cut(option, "=")
	return slices.ContainsFunc(strings.Split(list, ","), func(item string) bool {
		has, _, hasValue := strings.Cut(strings.TrimSpace(item), "=")
		return has == key && hasValue == valued
	})
}

// SparePatch is the one write that has Argo CD leave a claim alone, and why; nil: there is
// nothing to write. It holds for the version that was looked at.
func (w *Workload) SparePatch(c *corev1.PersistentVolumeClaim, v Verdict) (patch []byte, why string) {
	spare := w.Spare(c, v)
	if spare == nil {
		return nil, ""
	}
	m := map[string]any{"uid": c.UID, "annotations": spare}
	if c.ResourceVersion != "" {
		m["resourceVersion"] = c.ResourceVersion
	}
	patch, _ = json.Marshal(map[string]any{"metadata": m}) // strings always marshal
	return patch, fmt.Sprintf("the claim has the label %s and no owner, so that Argo CD may take it for a stray: its annotations ask it not to prune it", w.Tracking)
}
