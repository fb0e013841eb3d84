package release

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/message"
)

// Compute decides the next step for one release. It never mutates its input; equal
// inputs give equal plans.
func Compute(in Input) Plan {
	c := &computation{in: in, records: slices.Clone(in.Records)}
	slices.SortFunc(c.records, func(a, b Record) int { return cmp.Compare(b.Version, a.Version) })
	if in.Want != nil {
		c.plan.Numbers.Desired = in.Want.Replicas
	}
	switch {
	case in.Blind != "":
		c.blind()
	case in.Want == nil:
		c.uninstall()
	default:
		c.converge()
	}
	c.plan.Refresh = !in.Fresh && slices.ContainsFunc(c.plan.Steps, func(s Step) bool { return s.Record == nil })
	if c.plan.Asks() {
		c.plan.Steps = nil
	}
	return c.plan
}

// computation is a plan in the making.
type computation struct {
	in      Input
	records []Record // the newest first
	plan    Plan
	failed  string // why the record that is under way counts as failed
}

func (c *computation) stall(reason, format string, args ...any) {
	s := Stall{reason, fmt.Sprintf("release %q: ", c.in.Name) + fmt.Sprintf(format, args...)}
	if !slices.Contains(c.plan.Stalls, s) {
		c.plan.Stalls = append(c.plan.Stalls, s)
	}
}

func (c *computation) wait(format string, args ...any) {
	c.plan.Waits = append(c.plan.Waits, fmt.Sprintf("release %q: ", c.in.Name)+fmt.Sprintf(format, args...))
}

func (c *computation) note(format string, args ...any) {
	c.plan.Notes = append(c.plan.Notes, fmt.Sprintf("release %q: ", c.in.Name)+fmt.Sprintf(format, args...))
}

func (c *computation) poll(ref Ref) { c.plan.Polls = append(c.plan.Polls, ref) }

func (c *computation) step(s Step) { c.plan.Steps = append(c.plan.Steps, s) }

// blind says that nothing is known of the release, and what to do.
func (c *computation) blind() {
	c.stall(v1beta1.ReasonRefused, "%s. Charts are applied by the rights of ServiceAccount %s of their namespace, as if it ran helm: "+
		"kubectl -n %s create rolebinding %s --clusterrole=admin --serviceaccount=%s:%s", message.Quote(c.in.Blind), c.in.Account, c.in.Namespace, c.in.Account, c.in.Namespace, c.in.Account)
}

// see is an object of the cluster. Not known: it is asked for.
func (c *computation) see(ref Ref) (o *unstructured.Unstructured, known bool) {
	if why, hidden := c.in.Hidden[ref]; hidden {
		advice := ""
		if ref.Kind == kindCRD {
			advice = fmt.Sprintf(". The chart has it in crds/: give ServiceAccount %s of namespace %s the right to get it. Where the cluster lacks it, that needs the right to create and patch it, too, and %s",
				c.in.Account, c.in.Namespace, anywhere)
		}
		c.stall(v1beta1.ReasonRefused, "the cluster refuses to show %s: %s%s", ref, message.Quote(why), advice)
		return nil, false
	}
	o, known = c.in.Objects[ref]
	if !known && !slices.Contains(c.plan.Look, ref) {
		c.plan.Look = append(c.plan.Look, ref)
	}
	return o, known
}

// load says whether the objects of a record are known, and asks for them if not.
func (c *computation) load(r *Record) bool {
	if r != nil && !r.Loaded && !slices.Contains(c.plan.Load, r.Version) {
		c.plan.Load = append(c.plan.Load, r.Version)
	}
	return r == nil || r.Loaded
}

// last record; nil: there is none.
func (c *computation) last() *Record {
	if len(c.records) == 0 {
		return nil
	}
	return &c.records[0]
}

// base is the newest record before a version that was deployed; nil: there is none.
func (c *computation) base(before int) *Record {
	for i := range c.records {
		if r := &c.records[i]; r.Version < before && (r.Status == Deployed || r.Status == Superseded) {
			return r
		}
	}
	return nil
}

func isPending(s Status) bool { return strings.HasPrefix(string(s), "pending-") }

func (c *computation) isOurs(r *Record) bool { return r != nil && r.Owner == c.in.Owner }

// isWanted says whether a record was made for what is wanted.
func (c *computation) isWanted(r *Record) bool {
	if r.Content != c.in.Want.Content {
		return false
	}
	return r.Replicas == nil || *r.Replicas == c.in.Want.Replicas || c.isAutoscaled(r)
}

// converge takes a release on to what it is to be.
func (c *computation) converge() {
	last := c.last()
	switch {
	case last == nil:
		c.renew(nil)
	case !c.isOurs(last) && !c.in.Adopt:
		c.foreign(last)
	case !c.isOurs(last) && (isPending(last.Status) || last.Status == Uninstalling):
		c.wait("version %d is %s, and is waited for", last.Version, last.Status)
		c.poll(RecordRef(c.in.Name))
	case !c.isOurs(last):
		c.renew(last)
	case last.Status == Uninstalling || last.Status == Superseded:
		c.renew(last)
	case c.in.Want.Held && c.base(last.Version+1) != nil, c.isWanted(last) && !c.isRetried(last):
		c.carryOn(last)
	default:
		c.renew(last)
	}
	c.trim()
}

// isRetried says whether another try is asked for of a record whose hook failed: its content
// gets a new record, as by another `helm upgrade`.
func (c *computation) isRetried(r *Record) bool {
	if c.in.Retry == "" || c.in.Retry == r.Retried || r.Status != Failed || c.in.Want.Held || !c.load(r) {
		return false
	}
	return slices.ContainsFunc(r.Hooks, func(h Hook) bool { return h.Run.Phase == RunFailed })
}

// foreign notes that the release is somebody else's.
func (c *computation) foreign(last *Record) {
	c.plan.Taken = true
	c.poll(RecordRef(c.in.Name))
	whose := "helm made it by hand, or another controller"
	if last.Owner != "" {
		whose = "an AdvDeployment with another UID made it"
	}
	c.stall(v1beta1.ReasonResourceExists, "Resource %q already exists and is not managed by AdvDeployment: version %d of the release is there, and %s. "+
		"Uninstall it, or take it over: annotate the AdvDeployment with %s=%s", c.in.Name, last.Version, whose, AnnotationAdopt, c.in.Name)
}

// renew makes the next record, and keeps what is in place until it can.
func (c *computation) renew(last *Record) {
	version := 1
	if last != nil {
		version = last.Version + 1
	}
	made, ok := c.prepare(version)
	if ok && len(c.plan.Look) == 0 && len(c.plan.Stalls) == 0 && c.createCRDs() && c.create(made, version) {
		return
	}
	if base := c.base(version); base != nil && c.load(base) {
		// What is deployed goes on as it is.
		c.keep(base)
		c.count(base)
	}
	c.plan.Numbers.UpToDate = false
}

// prepare says what the objects of the next record are. Not ok: they are not known yet,
// or must not be.
func (c *computation) prepare(version int) (made []Object, ok bool) {
	r := c.in.Rendered
	if r == nil || r.Revision != 0 && r.Revision != version { // names may have the revision in them
		c.plan.Render = &Render{Revision: version}
		c.wait("the chart is being rendered")
		return nil, false
	}
	if r.Err != "" {
		c.stall(ReasonChart, "%s", message.Quote(r.Err))
		return nil, false
	}
	made, problems := c.made(r)
	for _, p := range problems {
		c.stall(p.Reason, "%s", p.Message)
	}
	if len(problems) > 0 || !c.allowed(made, r) {
		return nil, false
	}
	for i := range made {
		ref := c.refOf(made[i].Content)
		if o, known := c.see(ref); known && o != nil && !c.owns(o) {
			c.taken(ref, o)
		}
	}
	return made, true
}

// createCRDs creates those of crds/ that the cluster lacks. True: all are there.
func (c *computation) createCRDs() bool {
	there := true
	for _, crd := range c.in.Rendered.CRDs {
		ref := c.refOf(crd.Content)
		switch o, known := c.see(ref); {
		case !known:
			there = false
		case o == nil:
			there = false
			c.refused(ref)
			c.step(Step{Op: Create, Ref: ref, Manifest: bare(crd.Content), Why: fmt.Sprintf("the chart needs %s", ref)})
		case !isEstablished(o):
			there = false
			c.poll(ref)
			c.wait("%s is not established yet", ref)
		}
	}
	return there
}

// create stores the next record, which is under way then. False: the cluster refuses it.
func (c *computation) create(made []Object, version int) bool {
	r := c.in.Rendered
	status, why := PendingInstall, "it is installed"
	if c.base(version) != nil {
		status, why = PendingUpgrade, "chart, values or content are other ones"
	}
	if last := c.last(); last != nil && c.isWanted(last) && c.isRetried(last) {
		why = fmt.Sprintf("version %d is tried again", last.Version)
	}
	record := &Record{Version: version, Status: status, Chart: r.Chart, Owner: c.in.Owner, Content: c.in.Want.Content, Retried: c.in.Retry, Loaded: true, Objects: made, Hooks: r.Hooks}
	if r.TakesReplicas {
		record.Replicas = new(c.in.Want.Replicas)
	}
	refused := c.refused(RecordRef(c.in.Name))
	c.wait("version %d is being stored", version)
	c.step(Step{Op: CreateRecord, Ref: RecordRef(c.in.Name), Record: record, Warnings: r.Warnings, Why: fmt.Sprintf("version %d of release %q: %s", version, c.in.Name, why)})
	return !refused
}

// carryOn takes the last record on to being deployed, and keeps it so.
func (c *computation) carryOn(r *Record) {
	base := c.base(r.Version)
	if !c.load(r) {
		return
	}
	if r.Status == Deployed {
		c.keep(r)
		c.count(r)
		c.outdated(r)
		return
	}
	kind := "install"
	if base != nil {
		kind = "upgrade"
	}
	c.advance(r, base, kind)
	if c.failed != "" && (r.Status != Failed || r.Description != c.failed) {
		now := *r
		now.Status, now.Description = Failed, c.failed
		c.update(r, &now, "it failed: "+c.failed)
	}
	c.plan.Numbers.UpToDate = false
}

// advance goes through the phases of a record.
func (c *computation) advance(r, base *Record, kind string) {
	if !c.hooks(r, "pre-"+kind) {
		if base != nil && c.load(base) && len(c.plan.Steps) == 0 {
			c.keep(base) // nothing of the new one is applied yet
		}
		c.counted(base)
		return
	}
	applied := c.keep(r)
	c.count(r)
	if !applied || !c.prune(r, base) || !c.hooks(r, "post-"+kind) {
		return
	}
	now := *r
	now.Status, now.Description = Deployed, map[string]string{"install": "Install complete", "upgrade": "Upgrade complete"}[kind]
	c.wait("version %d is deployed", r.Version)
	c.update(r, &now, fmt.Sprintf("all of version %d is applied", r.Version))
}

// counted are the numbers of a record that may not be there.
func (c *computation) counted(r *Record) {
	if r != nil && r.Loaded {
		c.count(r)
	}
}

// update writes the state of a record.
func (c *computation) update(was, now *Record, why string) {
	c.refused(RecordRef(c.in.Name))
	c.step(Step{Op: UpdateRecord, Ref: RecordRef(c.in.Name), Record: now, UID: was.UID, Version: was.ResourceVersion, Why: fmt.Sprintf("version %d of release %q: %s", now.Version, c.in.Name, why)})
}

// outdated marks what a deployed record took the place of.
func (c *computation) outdated(r *Record) {
	for i := range c.records {
		old := &c.records[i]
		if old.Version < r.Version && (old.Status == Deployed || isPending(old.Status)) {
			now := *old
			now.Status = Superseded
			if isPending(old.Status) {
				now.Status, now.Description = Failed, fmt.Sprintf("version %d took its place before it was deployed", r.Version)
			}
			c.update(old, &now, fmt.Sprintf("version %d is deployed", r.Version))
		}
	}
}

// trim deletes records that are older than those which are kept. The last one that was
// deployed stays in any case.
func (c *computation) trim() {
	if len(c.plan.Steps) > 0 {
		return
	}
	kept := 0
	last := c.last()
	if last == nil || last.Status != Deployed || !c.isOurs(last) {
		return
	}
	for i := range c.records {
		r := &c.records[i]
		if r.Status != Superseded && r.Status != Failed || r.Version >= last.Version {
			continue
		}
		if kept++; kept > c.in.History {
			c.step(Step{Op: DeleteRecord, Ref: RecordRef(c.in.Name), Record: r, UID: r.UID, Why: fmt.Sprintf("version %d of release %q is older than the %d that are kept", r.Version, c.in.Name, c.in.History)})
		}
	}
}

// refused notes what the API server says of a write, and says whether it does.
func (c *computation) refused(ref Ref) bool {
	why, is := c.in.Refused[ref]
	if is {
		c.failed = fmt.Sprintf("the cluster refuses %s: %s", ref, message.Quote(why))
		c.stall(v1beta1.ReasonRefused, "%s", c.failed)
	}
	return is
}
