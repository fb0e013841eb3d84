package tapp

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tkestack.io/tapp/plan/budget"
	"tkestack.io/tapp/plan/inplace"
	"tkestack.io/tapp/plan/template"
	"tkestack.io/tapp/plan/trial"
	"tkestack.io/tapp/plan/unready"
)

// rollOut spends the budgets: forced ids first, then rolling ones, each in
// ascending order. An instance that serves may be taken while enough of the others do,
// see budget.Round. One that does not serve neither waits nor spends, so that a good template
// gets through however broken the last one was. It returns the ids that the policy
// InPlaceOnly holds.
func rollOut(s *spec, c *clock, t *turns, b *trial.Bench, all []*instance) (held []int) {
	r := rollout{spec: s, clock: c, turns: t, bench: b, all: all}
	desired := count(all, (*instance).desired)
	now := countServing(all)
	budgets := s.budgetsOf(desired)
	for _, forced := range []bool{true, false} {
		of := budgets.Rolling
		if forced {
			of = budgets.Forced
		}
		b := &budget.Round{Forced: forced, Valid: of.Valid, Desired: desired, Counts: now, Least: desired - of.MaxUnavailable}
		for _, i := range all {
			if i.state == alive && i.desired() && forced == s.isForced(i) {
				r.roll(i, b)
			}
		}
		now = b.Counts
	}
	return r.held
}

// rollout takes instances further on the way to their templates.
type rollout struct {
	*spec
	clock *clock
	turns *turns
	bench *trial.Bench // nil: nothing is tried
	all   []*instance
	held  []int
}

// roll takes an instance a step further if its turn has come.
func (r *rollout) roll(i *instance, b *budget.Round) {
	if b.Valid && !b.HasRoom(i.weight()) && r.surelyDisrupts(i) {
		i.wait(reasonBudget, b.WhyNoRoom(i.weight()))
		return
	}
	switch n := r.intentOf(i); {
	case n.kind == keep:
		r.finish(i, i.template == nil)
	case r.isHeld(i, n):
		r.finish(i, true)
	case n.kind == awaitResize:
		i.wait(inplace.ResizeUnderWay(i.pod))
	default:
		r.spend(i, n, b)
	}
}

// isHeld says whether a policy or a pause keeps the update from starting, and has the
// instance wait for that.
func (r *rollout) isHeld(i *instance, n *intent) bool {
	switch {
	case n.kind == hold:
		i.wait(n.reason, r.why(i))
		r.held = append(r.held, i.id)
		return true
	case r.tapp.Spec.Paused && !i.isDrained() && n.kind != stamp: // which changes nothing but what we know of the pod
		i.wait(reasonPaused, "spec.paused is true, and no update starts")
		return true
	case n.kind == recreate && r.keepsClaim(i):
		return true
	}
	return false
}

// spend takes the next step of an update, as far as the budget and the plan have room.
func (r *rollout) spend(i *instance, n *intent, b *budget.Round) {
	disrupts := i.needsRoom() && n.kind.disrupts()
	switch {
	case disrupts && !b.Valid:
		i.wait("NoBudget", r.whyNoBudget(b.Forced))
	case disrupts && !b.HasRoom(i.weight()):
		i.wait(reasonBudget, b.WhyNoRoom(i.weight()))
		if i.updating && !i.isDrained() { // a pod that was made as it was, and has no open gate yet
			r.awaitUpdate(i, true)
		}
	case r.turns.mayBegin(i):
		begins, takesRoom := r.admits(i, n)
		if disrupts && takesRoom {
			b.Counts = b.Without(i.weight())
		}
		if !begins {
			return
		}
		version := ""
		if n.kind.disrupts() && !disrupts && !i.isDrained() {
			// It spends no budget because the pod does not serve, which it may do by now.
			version = i.pod.ResourceVersion
		}
		r.advance(i, version)
	}
}

// advance takes the next step of an update. With a version, a disruption holds for
// that version of the pod only.
func (r *rollout) advance(i *instance, version string) {
	switch n := r.intentOf(i); n.kind {
	case recreate:
		r.delete(r.clock, i, Action{Reason: n.reason, Why: r.why(i), ResourceVersion: version, ForUpdate: true})
	case resize, resizeAndRestart:
		r.resize(i, version)
	case stamp, relabel:
		if inplace.IsOriginals(i.pod) && !r.clock.progressOf(i).Done {
			r.awaitUpdate(i, false) // nothing else would tell of it any more
			return
		}
		r.relabel(i)
		if i.updating {
			r.awaitUpdate(i, false)
		}
	case updateInPlace:
		r.updateInPlace(i, version)
	}
}

func (r *rollout) updateInPlace(i *instance, version string) {
	resources := r.resourcesOf(i)
	reason, why := "ImageChanged", r.why(i)
	if len(resources) > 0 {
		reason = reasonResources
	}
	if r.drain(i, version, reason, why) {
		return
	}
	patch, err := r.patchOf(i, version)
	if err != nil {
		i.wait("UpdateFailed", err.Error())
		return
	}
	i.act(Action{Op: OpUpdateInPlace, Pod: i.pod, Patch: patch, Reason: reason, Why: why, Question: r.bench.Of(trial.Update, i.pod, i.template.Hashes.Template)})
}

// patchOf is the patch that updates the instance's pod in place.
func (r *rollout) patchOf(i *instance, version string) ([]byte, error) {
	return inplace.Update{Pod: i.pod, Want: r.wantedPod(i, r.resourcesOf(i)), Hashes: i.template.Hashes, Now: r.clock.now, ResourceVersion: version}.Patch()
}

// resize changes the pod's resources. Where a container is restarted for it, the
// pod is taken out of its Services first.
func (r *rollout) resize(i *instance, version string) {
	why := r.why(i)
	if r.intentOf(i).kind == resizeAndRestart && r.drain(i, version, reasonResources, why) {
		return
	}
	to := r.resizeOf(i)
	patch, refused := to.Patch(i.template.Hashes.Template)
	a := Action{Op: OpResize, Pod: i.pod, Patch: patch, Refused: refused, Reason: reasonResources, Why: why}
	if r.intentOf(i).kind == resizeAndRestart {
		a.Question = r.bench.Of(trial.Resize, i.pod, i.template.Hashes.Template)
	}
	i.act(a)
}

// drain takes the pod out of its Services, if it has a gate, and says whether the
// update has to wait for that.
func (r *rollout) drain(i *instance, version, reason, why string) (waits bool) {
	switch {
	case !inplace.HasGate(i.pod):
		return false
	case !inplace.GateClosed(i.pod):
		i.act(Action{Op: OpDrain, Pod: i.pod, Reason: reason, Why: why,
			Status: inplace.GatePatch(inplace.Target{UID: i.pod.UID, ResourceVersion: version}, false, "InPlaceUpdate", why, r.clock.now)})
		return true
	}
	return !r.drained(i)
}

// drained says whether a pod with a closed gate is out of its Services, and has
// been for the grace period.
func (r *rollout) drained(i *instance) bool {
	c := unready.Ready(i.pod)
	if c != nil && c.Status == corev1.ConditionTrue {
		i.wait("Draining", "its pod is being taken out of its Services: its gate is closed, and Ready is still True")
		return false
	}
	since, _ := inplace.GateClosedSince(i.pod)
	if c != nil && c.LastTransitionTime.After(since) {
		since = c.LastTransitionTime.Time
	}
	grace := r.tapp.Spec.UpdateStrategy.InPlaceUpdate.GracePeriodSeconds
	if left := time.Duration(grace)*time.Second - r.clock.now.Sub(since); grace > 0 && left > 0 {
		r.clock.waitFor(left)
		i.wait("GracePeriod", "its pod is out of its Services, and changes after the grace period")
		return false
	}
	return true
}

// finish ends what is left of an update of a pod that is not going to change now.
// Explained: it was said already what the instance waits for.
func (r *rollout) finish(i *instance, explained bool) {
	switch {
	case i.updating:
		r.awaitUpdate(i, explained)
	case !i.available && !explained:
		i.wait(unready.Why(i.pod, unready.Opening(i.pod, r.clock.now)))
	case !explained && i.differs != "":
		i.wait(template.ReasonImageDiffers, i.differs+"; kubectl tapp restart "+r.tapp.Name+" with its id makes it anew, and the next update in place sets it back")
	}
}

// awaitUpdate opens the gate of a pod that has what its last update brought.
func (r *rollout) awaitUpdate(i *instance, explained bool) {
	switch update := r.clock.progressOf(i); {
	case update.Done: // and so the gate is what is left
		reason, why := "PodCreated", "no in-place update is under way"
		if inplace.GateClosed(i.pod) {
			reason, why = "InPlaceUpdateDone", "the in-place update is done"
		}
		i.act(Action{Op: OpUndrain, Pod: i.pod, Reason: reason, Why: why,
			Status: inplace.GatePatch(inplace.Target{UID: i.pod.UID}, true, reason, why, r.clock.now)})
	case !explained:
		i.wait(unready.Why(i.pod, *update))
	}
}

func (r *rollout) relabel(i *instance) {
	n, resources := r.intentOf(i), r.resourcesOf(i)
	write := inplace.RelabelPatch
	if n.kind == stamp {
		write = inplace.StampPatch
	}
	patch, err := write(i.pod, r.wantedPod(i, resources), i.template.Hashes)
	if err != nil {
		i.wait("RelabelFailed", err.Error())
		return
	}
	reason := "MetadataChanged"
	switch {
	case n.kind == stamp:
		reason = "HashAdopted"
	case i.updated:
		reason = "LabelsChanged"
	case len(resources) > 0:
		reason = reasonResources
	}
	i.act(Action{Op: OpRelabel, Pod: i.pod, Patch: patch, Reason: reason, Why: r.why(i)})
}

// turns bounds how many instances of a template one plan creates and updates.
type turns struct {
	clock *clock
	batch int // 0: no bound
}

// nextBatch is when to plan again after a batch.
const nextBatch = time.Millisecond

// mayBegin says whether this plan has room for one more instance of the template,
// and has the instance wait otherwise. Each template has a room of its own, so that one
// whose pods are refused does not stand in the way of the others. A pod that is out of
// its Services for the update does not wait.
func (t *turns) mayBegin(i *instance) bool {
	if t.batch == 0 || i.template == nil || i.template.actions < t.batch || i.isDrained() {
		return true
	}
	i.wait(reasonTurn, fmt.Sprintf("its turn comes after %d actions on other instances", t.batch))
	t.clock.waitFor(nextBatch)
	return false
}
