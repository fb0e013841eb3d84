package advdeployment

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
	"tkestack.io/tapp/plan/rollout"
)

// progression is the rollout of an AdvDeployment that no AppSet made. It follows the rules for
// AppSets (plan/rollout), with one cluster that is always certain.
type progression struct {
	in       rollout.Input
	decision rollout.Decision
	ledger   podset.Ledger
	revision string // of all podSets as asked for
	target   string // the same, as the status has it
	// stable units by name; nil: nothing is known to be stable.
	stable map[string]*podset.Unit
	// frozen are the podSets whose children stay as they are: nobody knows their content.
	frozen map[string]bool
	// before are the units of the recorded rollout, if that has another target. has are the
	// hashes of the contents of instances that have not begun to change.
	before map[string]*podset.Unit
	has    map[string]string
	// verdicts by the name of the podSet.
	verdicts map[string]*rollout.Verdict
}

// IsPart says whether an AppSet made the AdvDeployment. Then the AppSet decides how it changes.
func IsPart(d *v1beta1.AdvDeployment) bool {
	return d.Labels[v1beta1.LabelAppSetUID] != "" || d.Annotations[v1beta1.AnnotationAppSet] != ""
}

// rolls says whether updateStrategy rolls out the podSets. Others change at once: those of an
// AppSet, those of charts, and those whose revision somebody else has set.
func (c *computation) rolls() bool {
	deployType, _ := v1beta1.DeployTypeOf(&c.d.Spec.PodSpec)
	if IsPart(c.d) || deployType == v1beta1.DeployHelm || len(c.d.Spec.Topology.PodSets) == 0 {
		return false
	}
	for i := range c.d.Spec.Topology.PodSets {
		if c.d.Spec.Topology.PodSets[i].Revision != "" {
			return false
		}
	}
	return true
}

// roll decides which content each podSet has now, and sets it in the units.
func (c *computation) roll(units []podset.Unit) {
	if !c.rolls() {
		return
	}
	p := c.newProgression(units)
	c.rolling, p.decision = p, rollout.Compute(p.in)
	d := &p.decision
	for i := range units {
		v := &d.Units[i]
		p.verdicts[units[i].PodSet.Name] = v
		p.assign(&units[i], &c.d.Spec.Topology.PodSets[i], v)
	}
	if d.Store {
		c.keep = p.ledger.Keep(d.Record)
		p.ledger.Add(c.keep, p.revision, podset.HistoryOf(podset.AsAppSet(c.d), c.unitsNow()))
	}
	c.obsolete = p.ledger.Obsolete(d.Record, c.d.Spec.RevisionHistoryLimit)
	const again = "Set the spec back to return, or annotate the AdvDeployment with %s=%s to try again"
	switch {
	case d.State == rollout.Halted:
		c.halt(v1beta1.ReasonHalted, fmt.Sprintf("the rollout %s halted: %s. "+again, d.Record.ID, d.Why, v1beta1.AnnotationRetry, d.Record.ID))
	case d.State == rollout.RolledBack:
		c.halt(v1beta1.ReasonRolledBack, fmt.Sprintf("the rollout %s failed, and all run what they ran before: %s. "+again, d.Record.ID, d.Record.Halted, v1beta1.AnnotationRetry, d.Record.ID))
	case d.Why != "":
		c.waits = append(c.waits, d.Why)
	}
}

// goesOn notes that the rollout is under way, if there is nothing else to wait for.
func (c *computation) goesOn() {
	if c.rolling != nil && len(c.waits)+len(c.stalls) == 0 && !c.isIn(rollout.Done) {
		c.waits = append(c.waits, fmt.Sprintf("rollout %s goes on", c.rolling.decision.Record.ID))
	}
}

func (c *computation) halt(reason, why string) {
	c.stalls = append(c.stalls, stall{reason: reason, message: why, event: &Event{"Warning", reason, why}})
}

// unitsNow are the units as asked for.
func (c *computation) unitsNow() []podset.Unit {
	units, _, _ := podset.Placed(c.d)
	return units
}

func (c *computation) newProgression(units []podset.Unit) *progression {
	p := &progression{
		ledger: podset.LoneLedgerOf(c.d, c.in.Revisions), revision: podset.Revision(units), target: revisionOf(units),
		frozen: map[string]bool{}, has: map[string]string{}, verdicts: map[string]*rollout.Verdict{},
	}
	p.in = rollout.Input{
		UID: string(c.d.UID), Generation: c.d.Generation, Revision: p.revision, Record: p.ledger.Record(),
		Strategy: podset.RolloutStrategy(&c.d.Spec.UpdateStrategy, c.d.Spec.ProgressDeadlineSeconds),
		Clusters: []rollout.Cluster{{Fresh: true, Ready: true}}, Retry: c.d.Annotations[v1beta1.AnnotationRetry], Now: c.in.Now, Ran: podset.Ran(c.d.Status.Rollout),
	}
	for _, conf := range c.in.Confirmations {
		if conf.Spec.AppSet == c.d.Name {
			p.in.Confirmations = append(p.in.Confirmations, rollout.Confirmation{Rollout: conf.Spec.Rollout, Stage: conf.Spec.Stage, Token: conf.Spec.Token, By: conf.Spec.ConfirmedBy})
		}
	}
	if r := p.in.Record; r != nil {
		p.stable = p.unitsIn(r.Stable, c, units)
		p.in.HasStable = p.stable != nil
		if r.Revision != p.revision {
			p.before = p.unitsIn(r.Revision, c, units)
		}
	}
	for i := range units {
		p.in.Units = append(p.in.Units, p.unit(c, &units[i]))
	}
	return p
}

// unitsIn a history, by name; nil: it is not stored.
func (p *progression) unitsIn(revision string, c *computation, now []podset.Unit) map[string]*podset.Unit {
	history := p.ledger.History(revision)
	if history == nil {
		return nil
	}
	_, units := history.As(podset.AsAppSet(c.d), now)
	out := map[string]*podset.Unit{}
	for i := range units {
		out[units[i].PodSet.Name] = &units[i]
	}
	return out
}

// unit as the planner of rollouts sees it.
func (p *progression) unit(c *computation, u *podset.Unit) rollout.Unit {
	out := rollout.Unit{Key: rollout.Key{Name: u.PodSet.Name}, Group: u.Group, Replicas: u.Replicas, Target: u.Hash, Stable: u.Hash, Before: u.Hash}
	if p.stable != nil {
		out.Stable = hashOf(p.stable[u.PodSet.Name])
	}
	if p.in.Record != nil && p.in.Record.Revision != p.revision {
		out.Before = hashOf(p.before[u.PodSet.Name])
	}
	kind, known := kindOf(u.Content.DeployType)
	have := c.own(Child{kind, u.PodSet.Name})
	if !known || have == nil {
		return out
	}
	out.Has, out.Version = have.GetAnnotations()[v1beta1.AnnotationRevision], have.GetResourceVersion()
	out.Grant, out.Ceiling = grantOf(have)
	if p.has[u.PodSet.Name] = have.GetAnnotations()[v1beta1.AnnotationFrom]; p.has[u.PodSet.Name] == "" {
		p.has[u.PodSet.Name] = out.Has
	}
	seen := unit{Unit: *u, child: Child{kind, u.PodSet.Name}, have: have}
	seen.Hash = out.Has
	n := c.numbersOf(&seen)
	out.Desired, out.Current, out.Updated, out.Available = n.desired, n.current, n.updated, n.available
	out.Observed = n.observed && have.GetDeletionTimestamp() == nil
	for _, f := range n.failures {
		if podset.IsFault(f.reason) {
			out.Stalled = f.message
		}
	}
	p.noteProgress(&c.in.AdvDeployment.Status, &out)
	return out
}

func hashOf(u *podset.Unit) string {
	if u == nil {
		return ""
	}
	return u.Hash
}

// noteProgress sets when a unit last got on, from the stored status.
func (p *progression) noteProgress(status *v1beta1.AdvDeploymentStatus, out *rollout.Unit) {
	for i := range status.AggrStatus.PodSets {
		stored := &status.AggrStatus.PodSets[i]
		if stored.Name != out.Name || stored.ProgressedAt == nil {
			continue
		}
		out.Progress.At, out.Progress.Available = stored.ProgressedAt.Time, stored.Available
		if stored.Update != nil && stored.Revision == out.Has {
			out.Progress.Updated = *stored.Update
		}
	}
}

// grantOf a child, and its ceiling, as they were written.
func grantOf(have *unstructured.Unstructured) (grant, ceiling *int32) {
	first, second, found := strings.Cut(have.GetAnnotations()[v1beta1.AnnotationGrant], "/")
	a, errA := strconv.ParseInt(first, 10, 32)
	b, errB := strconv.ParseInt(second, 10, 32)
	if !found || errA != nil || errB != nil {
		return nil, nil
	}
	return new(int32(a)), new(int32(b))
}

// assign gives a unit the content that was decided. The number of instances that it may have
// out of service goes into its place in the topology, unless the user allows fewer.
func (p *progression) assign(u *podset.Unit, placed *v1beta1.PlacedPodSet, v *rollout.Verdict) {
	if v.Grant != nil && (placed.MaxUnavailable == nil || *v.Grant < *placed.MaxUnavailable) {
		placed.MaxUnavailable = new(*v.Grant)
	}
	placed.Ceiling = v.Ceiling
	has := p.has[u.PodSet.Name]
	switch then := p.stable[u.PodSet.Name]; {
	case v.Content == u.Hash:
	case then != nil && then.Hash == v.Content:
		u.Content, u.Hash, u.Version = then.Content, then.Hash, then.Version
	default:
		p.frozen[u.PodSet.Name] = true
	}
	for _, known := range []map[string]*podset.Unit{p.stable, p.before} {
		if then := known[u.PodSet.Name]; then != nil && then.Hash == has && has != u.Hash {
			u.From = &podset.Former{Content: then.Content, Hash: then.Hash}
			return
		}
	}
}

// grantText is the annotation with the grant of a child that is rolled out here; empty: it has
// no limit.
func (c *computation) grantText(u *unit) string {
	if c.rolling == nil {
		return ""
	}
	v := c.rolling.verdicts[u.PodSet.Name]
	if v == nil || v.Grant == nil || v.Ceiling == nil {
		return ""
	}
	return fmt.Sprintf("%d/%d", *v.Grant, *v.Ceiling)
}

// isIn says whether the rollout is in one of these states.
func (c *computation) isIn(states ...rollout.State) bool {
	if c.rolling == nil || c.d.DeletionTimestamp != nil {
		return false
	}
	for _, state := range states {
		if c.rolling.decision.State == state {
			return true
		}
	}
	return false
}
