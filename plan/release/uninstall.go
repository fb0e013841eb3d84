package release

import (
	"fmt"
	"slices"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// uninstall takes a release apart, by what its records say: the chart is not needed.
func (c *computation) uninstall() {
	last := c.last()
	if last == nil || !c.isOurs(last) {
		// A later version of somebody else has all that there is.
		c.plan.Gone = true
		return
	}
	if !c.loadOurs() {
		return
	}
	if last.Status != Uninstalling {
		now := *last
		now.Status, now.Description, now.Progress = Uninstalling, "Deletion in progress (or silently failed)", Progress{}
		now.Hooks = slices.Clone(last.Hooks)
		for i := range now.Hooks {
			if h := &now.Hooks[i]; slices.Contains(h.Events, "pre-delete") || slices.Contains(h.Events, "post-delete") {
				h.Run = Run{}
			}
		}
		c.wait("it is being uninstalled")
		c.update(last, &now, "nothing asks for the release any more")
		return
	}
	if !c.in.SkipHooks && !c.hooks(last, "pre-delete") {
		return
	}
	var all []Object
	for i := range c.records {
		if c.isInPlace(&c.records[i]) {
			all = append(c.records[i].Objects, all...)
		}
	}
	if !c.remove(all, nil, "release %q is uninstalled", c.in.Name) {
		return
	}
	if !c.in.SkipHooks && !c.hooks(last, "post-delete") {
		return
	}
	for _, r := range slices.Backward(c.records) { // the last one tells the most
		c.refused(RecordRef(c.in.Name))
		c.wait("its records are being deleted")
		c.step(Step{Op: DeleteRecord, Ref: RecordRef(c.in.Name), Record: &r, UID: r.UID, Why: fmt.Sprintf("release %q is uninstalled", c.in.Name)})
	}
}

// isInPlace says whether there may be objects of a record.
func (c *computation) isInPlace(r *Record) bool {
	base := c.base(c.last().Version + 1)
	return base == nil || r.Version >= base.Version
}

// loadOurs says whether all records are known of which there may be objects.
func (c *computation) loadOurs() bool {
	loaded := true
	for i := range c.records {
		if c.isInPlace(&c.records[i]) {
			loaded = c.load(&c.records[i]) && loaded
		}
	}
	return loaded
}

// Marks are the labels of a record's Secret beside Helm's.
func Marks(owner string) map[string]string {
	return map[string]string{v1beta1.LabelAdvDeployment: owner}
}
