package advdeployment

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
	"tkestack.io/tapp/plan/release"
)

// pollInterval is after how long to look again at objects that no watch tells of.
const pollInterval = 2 * time.Second

// ReleasePlan is the next step for one Helm release.
type ReleasePlan struct {
	Name string
	release.Plan
	// Unit that it is for; nil: it is to be uninstalled.
	Unit *podset.Unit
}

// Releases that a spec asks for, by their names. Of a spec that cannot be carried out
// there are none.
func Releases(d *v1beta1.AdvDeployment) []podset.Unit {
	units, _, _ := podset.Placed(d)
	return slices.DeleteFunc(units, func(u podset.Unit) bool { return u.Content.DeployType != v1beta1.DeployHelm })
}

// input of a release's planner.
func (c *computation) releaseInput(name string) release.Input {
	in := c.in.Releases[name]
	in.Name, in.Namespace, in.Owner, in.OwnerName, in.Now = name, c.d.Namespace, c.d.UID, c.d.Name, c.in.Now
	in.Adopt = slices.Contains(strings.FieldsFunc(c.d.Annotations[release.AnnotationAdopt], func(r rune) bool { return r == ',' || r == ' ' }), name)
	in.Retry, in.Part = c.d.Annotations[v1beta1.AnnotationRetry], IsPart(c.d)
	in.SkipHooks = c.d.Annotations[release.AnnotationSkipHooks] == "true"
	in.History = int(v1beta1.DefaultRevisionHistoryLimit)
	if limit := c.d.Spec.RevisionHistoryLimit; limit != nil {
		in.History = int(*limit)
	}
	return in
}

// release decides about the release of one podSet.
func (c *computation) release(u *unit) {
	name := u.PodSet.Name
	in := c.releaseInput(name)
	limit := u.placed.MaxUnavailable
	in.Want = &release.Want{
		App: c.d.Name, Content: u.Hash, Image: u.Content.Image, Version: u.Content.Version, Labels: u.Content.Labels, Annotations: u.Content.Annotations,
		Nodes: u.Content.Nodes, Workload: u.PodSet.Meta[release.LabelWorkload], Replicas: u.Replicas,
		MinReadySeconds: c.d.Spec.UpdateStrategy.MinReadySeconds, MaxUnavailable: limit,
		Held: c.d.Spec.UpdateStrategy.Paused || u.placed.Paused || limit != nil && *limit == 0,
	}
	p := release.Compute(in)
	c.releases = append(c.releases, ReleasePlan{Name: name, Plan: p, Unit: &u.Unit})
	c.told(&p)
	u.child, u.upToDate = Child{Release, name}, p.Numbers.UpToDate
	if p.Numbers.Exists {
		u.have = &unstructured.Unstructured{Object: map[string]any{"kind": string(Release), "metadata": map[string]any{"name": name}}}
	}
	n := p.Numbers
	u.numbers = numbers{desired: n.Desired, current: n.Current, updated: n.Updated, ready: n.Ready, available: n.Available, observed: n.Observed}
	if u.Content.Version == "" && n.Version != "" {
		u.Version = n.Version
	}
	switch {
	case len(p.Stalls) > 0:
		first := slices.MinFunc(p.Stalls, func(a, b release.Stall) int { return podset.FaultsFirst(a.Reason, b.Reason) })
		u.hindrance = stall{reason: first.Reason, message: first.Message}
	case len(p.Waits) > 0 && !u.done():
		u.hindrance = stall{reason: v1beta1.ReasonProgressing, message: p.Waits[0]}
	}
}

// told notes the problems, waits and events of a release's plan.
func (c *computation) told(p *release.Plan) {
	c.taken = c.taken || p.Taken
	c.waits, c.notes = append(c.waits, p.Waits...), append(c.notes, p.Notes...)
	for _, s := range p.Stalls {
		c.stalls = append(c.stalls, stall{reason: s.Reason, message: s.Message, event: &Event{corev1.EventTypeWarning, s.Reason, s.Message}})
	}
}

// leaveReleases uninstalls releases that nothing asks for any more, when all others are at rest.
func (c *computation) leaveReleases(asked map[Child]bool, atRest bool) {
	for _, name := range slices.Sorted(maps.Keys(c.in.Releases)) {
		child := Child{Release, name}
		if asked[child] || !c.hasRecords(name) {
			continue
		}
		c.leftOver = append(c.leftOver, child)
		if !atRest {
			c.waits = append(c.waits, fmt.Sprintf("%s stays until all others are done", child))
			continue
		}
		c.remains(name)
	}
}

// uninstall plans the end of all releases, and says how many are left. A deletion that orphans is
// no evidence that they go: the garbage collector takes its mark off as soon as it has released
// the children, and nothing tells of it afterwards. So a policy of the chart asks for AnnotationKeep.
func (c *computation) uninstall() (left int) {
	if c.d.Annotations[release.AnnotationKeep] == "true" || slices.Contains(c.d.Finalizers, metav1.FinalizerOrphanDependents) {
		return 0
	}
	for _, name := range slices.Sorted(maps.Keys(c.in.Releases)) {
		if (c.hasRecords(name) || c.in.Releases[name].Blind != "") && c.remains(name) {
			left++
		}
	}
	return left
}

// remains plans the end of a release. False: nothing is left of it.
func (c *computation) remains(name string) bool {
	p := release.Compute(c.releaseInput(name))
	if p.Gone {
		return false
	}
	c.releases = append(c.releases, ReleasePlan{Name: name, Plan: p})
	c.told(&p)
	return true
}

// hasRecords says whether a release has records of this very AdvDeployment.
func (c *computation) hasRecords(name string) bool {
	return slices.ContainsFunc(c.in.Releases[name].Records, func(r release.Record) bool { return r.Owner == c.d.UID })
}

// ownReleases are those that have records of ours.
func (c *computation) ownReleases() (out []string) {
	for _, name := range slices.Sorted(maps.Keys(c.in.Releases)) {
		if c.hasRecords(name) {
			out = append(out, string(Release)+"/"+name)
		}
	}
	return out
}

// poll sets Wait if a release waits for objects that no watch tells of.
func (c *computation) poll(p *Plan) {
	if p.Wait == 0 && slices.ContainsFunc(c.releases, func(r ReleasePlan) bool { return len(r.Polls) > 0 }) {
		p.Wait = pollInterval
	}
}
