package podset

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// Version is a content that an AppSet asked for once, as a revision of the hub stores it.
type Version struct {
	Revision int64 `json:"revision"`
	// Content is the hash of it.
	Content string `json:"content"`
	// Versions of its podSets, joined by "/".
	Versions string      `json:"versions"`
	Created  metav1.Time `json:"created"`
	// Target is what the rollout is about, and Stable what it returns to.
	Target bool `json:"target,omitempty"`
	Stable bool `json:"stable,omitempty"`
	// Name of the revision, and History that is stored in it.
	Name    string  `json:"-"`
	History History `json:"-"`
}

// VersionsOf an AppSet among revisions, the newest first.
func VersionsOf(a *v1beta1.AppSet, revisions []appsv1.ControllerRevision) ([]Version, error) {
	units, _, _ := Units(a)
	out := []Version{}
	for i := range revisions {
		r := &revisions[i]
		if r.Labels[v1beta1.LabelAppSetUID] != string(a.UID) || r.Labels[v1beta1.LabelRevision] == v1beta1.RevisionRecord {
			continue
		}
		v := Version{Revision: r.Revision, Content: r.Labels[v1beta1.LabelRevision], Created: r.CreationTimestamp, Name: r.Name}
		if err := json.Unmarshal(r.Data.Raw, &v.History); err != nil {
			return nil, fmt.Errorf("reading revision %s: %w", r.Name, err)
		}
		if rollout := a.Status.Rollout; rollout != nil {
			v.Target, v.Stable = rollout.Revision == v.Content, rollout.Stable == v.Content
		}
		_, then := v.History.As(a, units)
		var versions []string
		for k := range then {
			versions = append(versions, then[k].Version)
		}
		slices.Sort(versions)
		v.Versions = strings.Join(slices.Compact(versions), "/")
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b Version) int { return cmp.Compare(b.Revision, a.Revision) })
	return out, nil
}

// StableOf an AppSet in the midst of a rollout is its stable content; nil: there is none, or it
// is the one that is asked for.
func StableOf(a *v1beta1.AppSet, revisions []appsv1.ControllerRevision) (*History, error) {
	if !IsRolling(a) {
		return nil, nil
	}
	versions, err := VersionsOf(a, revisions)
	if err != nil {
		return nil, err
	}
	for i := range versions {
		if versions[i].Stable {
			return &versions[i].History, nil
		}
	}
	return nil, nil
}

// IsRolling says whether the content that is asked for is not the stable one; a may be nil.
func IsRolling(a *v1beta1.AppSet) bool {
	return a != nil && a.Status.Rollout != nil && a.Status.Rollout.Stable != a.Status.Rollout.Revision
}
