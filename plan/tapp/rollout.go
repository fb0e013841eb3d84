package tapp

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/inplace"
	"tkestack.io/tapp/plan/template"
)

// rollOut spends the budgets: forced ids first, then rolling ones, each in
// ascending order. An available instance may be taken while more than the
// wanted number less the budget is available; one that is not available neither
// waits nor spends, so that a good template gets through however broken the
// last one was.
func (d *decision) rollOut() {
	wanted, available := d.running()
	for _, forced := range []bool{true, false} {
		budget := d.rolling
		if forced {
			budget = d.forced
		}
		most, valid := Scale(budget, wanted)
		r := &round{forced: forced, valid: valid && d.broken == "", wanted: wanted, available: available, least: wanted - most}
		for _, i := range d.instances {
			if i.state == alive && i.running() && forced == (i.templateName != d.tapp.Spec.UpdateStrategy.Template) {
				d.roll(i, r)
			}
		}
		available = r.available
	}
}

// round of a rollout: the instances that share a budget.
type round struct {
	forced bool
	valid  bool // the budget is one
	// available instances there are of those that are wanted, and at least so many
	// there must be.
	wanted, available, least int
	// waits is why instances wait for the budget; empty while there is some left.
	waits string
}

// roll takes an instance a step further if its turn has come.
func (d *decision) roll(i *instance, r *round) {
	if r.waits != "" && d.mustWait(i) {
		i.hold(reasonBudget, r.waits)
		return
	}
	c := d.changeOf(i)
	takes := (i.available || i.doubted) && c.interrupts()
	spare := r.available - r.least
	if i.doubted { // it is not among them
		spare++
	}
	switch {
	case c == nothing || !d.mayStart(i, c):
		d.settle(i)
	case c == resizes:
		i.hold(inplace.ResizeUnderWay(i.pod))
	case takes && !r.valid:
		i.hold("NoBudget", d.whyNoBudget(r.forced))
	case takes && spare <= 0:
		if r.waits == "" { // and nothing changes for those that follow
			r.waits = fmt.Sprintf("%d of %d instances are available, and at least %d must be", r.available, r.wanted, r.least)
		}
		i.hold(reasonBudget, r.waits)
	case d.mayBegin(i):
		if takes && i.available {
			r.available--
		}
		d.advance(i, c)
		if !takes && c.interrupts() {
			i.beExact()
		}
	}
}

// beExact has what interrupts an instance that is not available hold for that only.
// One that is out of its Services for the update has paid for it.
func (i *instance) beExact() {
	if inplace.HasGate(i.pod) && inplace.GateClosed(i.pod) {
		return
	}
	for k := range i.actions {
		switch a := &i.actions[k]; a.Op {
		case OpDrain, OpUpdateInPlace, OpDelete:
			a.Exact = true
		}
	}
}

// mustWait is true where a spent budget decides, whatever changeOf would say:
// comparing pods of tkestack/tapp field by field, plan after plan until it is their
// turn, would be most of the cost of taking over 10,000 of them. False says nothing.
func (d *decision) mustWait(i *instance) bool {
	u := &d.tapp.Spec.UpdateStrategy.InPlaceUpdate
	return i.available && !i.current && i.template != nil && !d.tapp.Spec.Paused && u.Policy == tappv1.InPlaceIfPossible &&
		d.isForeignHash(i) && template.ChangesImage(i.pod, i.template.Spec, d.sameImage)
}

// running counts the instances that are to run, and those that are available.
func (d *decision) running() (wanted, available int) {
	for _, i := range d.instances {
		if i.running() {
			wanted++
		}
		if i.available {
			available++
		}
	}
	return wanted, available
}

func (d *decision) whyNoBudget(forced bool) string {
	switch {
	case d.broken != "":
		return d.broken
	case forced:
		return "spec.updateStrategy.forceUpdate.maxUnavailable allows no update to start"
	default:
		return "spec.updateStrategy.maxUnavailable allows no update to start"
	}
}

// mayStart says whether the policies allow the update, and holds the instance
// otherwise. A drained pod has started already.
func (d *decision) mayStart(i *instance, c change) bool {
	remade, _ := d.remade(i)
	if c == recreate && d.tapp.Spec.UpdateStrategy.InPlaceUpdate.Policy == tappv1.InPlaceOnly && remade == "" {
		what := fmt.Sprintf("template %q changed in more than images, labels and annotations", i.templateName)
		if why := d.whyNotResized(i); why != "" {
			what = why
		}
		i.hold(ReasonInPlaceOnly, what+", and spec.updateStrategy.inPlaceUpdate.policy InPlaceOnly forbids to recreate the pod")
		d.heldInPlace = append(d.heldInPlace, i.num)
		return false
	}
	started := inplace.HasGate(i.pod) && inplace.GateClosed(i.pod)
	if d.tapp.Spec.Paused && !started && c != stamp { // which changes nothing but what we know of the pod

		i.hold(reasonPaused, "spec.paused is true, and no update starts")
		return false
	}
	return true
}

// advance takes the next step of an update.
func (d *decision) advance(i *instance, c change) {
	switch c {
	case recreate:
		reason, _ := d.remade(i)
		d.delete(i, cmp.Or(reason, "TemplateChanged"), d.whyRecreate(i))
		return
	case resize, resizeAndRestart:
		d.resize(i, c)
		return
	case stamp, relabel:
		d.relabel(i, c)
		d.settle(i)
		return
	}
	want, resources := d.wantedOf(i)
	patch, _, err := inplace.Patch(i.pod, want, i.template.Hashes, d.in.Now)
	if err != nil {
		// The pod lacks a container of its template, and cannot be patched into it. That
		// has to be known before it is drained for nothing.
		if d.mayStart(i, recreate) {
			d.delete(i, "TemplateChanged", err.Error())
		} else {
			d.settle(i)
		}
		return
	}
	reason, why := "ImageChanged", strings.Join(append(template.ImageChanges(i.pod, i.template.Spec), resources...), ", ")
	if len(resources) > 0 {
		reason = reasonResources
	}
	switch {
	case inplace.HasGate(i.pod) && !inplace.GateClosed(i.pod):
		i.act(Action{Op: OpDrain, Pod: i.pod, Reason: reason, Why: why,
			Status: inplace.GatePatch(i.pod.UID, false, "InPlaceUpdate", why, d.in.Now)})
	case !inplace.HasGate(i.pod) || d.drained(i):
		i.act(Action{Op: OpUpdateInPlace, Pod: i.pod, Patch: patch, Reason: reason, Why: why})
	}
}

// drained says whether a pod with a closed gate is out of its Services, and has
// been for the grace period.
func (d *decision) drained(i *instance) bool {
	c := ready(i.pod)
	if c != nil && c.Status == corev1.ConditionTrue {
		i.hold("Draining", "its pod is being taken out of its Services: its gate is closed, and Ready is still True")
		return false
	}
	since, _ := inplace.GateClosedSince(i.pod)
	if c != nil && c.LastTransitionTime.After(since) {
		since = c.LastTransitionTime.Time
	}
	grace := d.tapp.Spec.UpdateStrategy.InPlaceUpdate.GracePeriodSeconds
	if left := time.Duration(grace)*time.Second - d.in.Now.Sub(since); grace > 0 && left > 0 {
		d.waitFor(left)
		i.hold("GracePeriod", "its pod is out of its Services, and changes after the grace period")
		return false
	}
	return true
}

// settle ends what is left of an update: it opens the gate of a pod that is not
// going to change now, and has what the last change wanted.
func (d *decision) settle(i *instance) {
	if !i.updating {
		if !i.available && i.reason == "" && len(i.actions) == 0 {
			i.hold(whyNotAvailable(i.pod))
		}
		return
	}
	switch update := d.inPlaceDone(i); {
	case update.Done: // and so the gate is what is left
		reason, why := "PodCreated", "no in-place update is under way"
		if inplace.GateClosed(i.pod) {
			reason, why = "InPlaceUpdateDone", "the in-place update is done"
		}
		i.act(Action{Op: OpUndrain, Pod: i.pod, Reason: reason, Why: why,
			Status: inplace.GatePatch(i.pod.UID, true, reason, why, d.in.Now)})
	case i.reason == "":
		i.hold(update.Reason, update.Why)
	}
}

func (d *decision) relabel(i *instance, c change) {
	want, resources := d.wantedOf(i)
	patch, err := inplace.RelabelPatch(i.pod, want, i.template.Hashes)
	if err != nil {
		i.hold("RelabelFailed", err.Error())
		return
	}
	reason := "MetadataChanged"
	switch {
	case c == stamp:
		reason = "HashAdopted"
	case i.current:
		reason = "LabelsChanged"
	case len(resources) > 0:
		reason = reasonResources
	}
	i.act(Action{Op: OpRelabel, Pod: i.pod, Patch: patch, Reason: reason, Why: whyRelabel(i, c, resources)})
}

func whyRelabel(i *instance, c change, resources []string) string {
	switch {
	case c == stamp:
		return "the pod is what its template makes, and lacks only the template's hash"
	case i.current:
		return "the pod lost labels of its instance"
	case len(resources) > 0:
		return "the resources follow: " + strings.Join(resources, ", ")
	}
	return "only labels and annotations of the template changed"
}
