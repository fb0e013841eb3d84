package release

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/manifest"
	"tkestack.io/tapp/plan/message"
)

// The delete policies of hooks.
const (
	beforeCreation = "before-hook-creation"
	succeeded      = "hook-succeeded"
	failed         = "hook-failed"
)

// Phases of a hook's run, as Helm records them.
const (
	RunRunning   = "Running"
	RunSucceeded = "Succeeded"
	RunFailed    = "Failed"
)

var events = []string{"pre-install", "post-install", "pre-upgrade", "post-upgrade", "pre-delete", "post-delete"}

// runs says whether we ever run the hook: tests are `helm test`'s, and nothing rolls back
// but Helm.
func (h *Hook) runs() bool {
	return slices.ContainsFunc(events, func(event string) bool { return slices.Contains(h.Events, event) })
}

// deletes says whether the hook's object is deleted by this policy.
func (h *Hook) deletes(policy string) bool {
	switch {
	case text(h.Content, "kind") == kindCRD: // with all that it defines: Helm does not either
		return false
	case len(h.DeletePolicies) == 0:
		return policy == beforeCreation
	}
	return slices.Contains(h.DeletePolicies, policy)
}

// hooksOf an event, as indexes in the order in which they run: by weight, then by name.
func hooksOf(r *Record, event string) (out []int) {
	for i := range r.Hooks {
		if slices.Contains(r.Hooks[i].Events, event) {
			out = append(out, i)
		}
	}
	slices.SortStableFunc(out, func(a, b int) int {
		return cmp.Or(cmp.Compare(r.Hooks[a].Weight, r.Hooks[b].Weight), cmp.Compare(r.Hooks[a].Name, r.Hooks[b].Name))
	})
	return out
}

// hooks takes the hooks of an event on. True: they are over.
func (c *computation) hooks(r *Record, event string) bool {
	mine := hooksOf(r, event)
	if len(mine) == 0 || isPast(r.Progress.Event, event) {
		return true
	}
	if r.Progress.Event != event {
		now := *r
		now.Progress = Progress{Event: event}
		c.wait("hooks %s begin", event)
		c.update(r, &now, fmt.Sprintf("hooks %s begin", event))
		return false
	}
	if bad := slices.IndexFunc(mine, func(i int) bool { return r.Hooks[i].Run.Phase == RunFailed }); bad >= 0 && r.Progress.Done <= bad {
		c.hookFailed(r, event, mine, bad)
		return false
	}
	if r.Progress.Done < len(mine) {
		c.hook(r, event, mine)
		return false
	}
	if r.Progress.Clean {
		return true
	}
	// Only when all are over: later ones may need what earlier ones made.
	if c.cleanHooks(r, event, mine, succeeded) {
		now := *r
		now.Progress.Clean = true
		c.update(r, &now, fmt.Sprintf("hooks %s are over", event))
	}
	return false
}

// isPast says whether the events of a record have gone beyond this one.
func isPast(at, event string) bool {
	return slices.Index(events, at) > slices.Index(events, event)
}

func (c *computation) runOf(r *Record, event string) string {
	return fmt.Sprintf("%d/%s", r.Version, event)
}

// hook takes the one hook on whose turn it is.
func (c *computation) hook(r *Record, event string, mine []int) {
	at := mine[r.Progress.Done]
	h := &r.Hooks[at]
	ref := c.refOf(h.Content)
	have, known := c.see(ref)
	if !known {
		return
	}
	c.poll(ref)
	c.refused(ref)
	switch {
	case have != nil && have.GetAnnotations()[annotationRun] == c.runOf(r, event):
		c.ran(r, event, at, have)
	case have != nil && have.GetDeletionTimestamp() != nil:
		c.wait("hook %s: %s of an earlier run is being deleted", event, ref)
	case have != nil && h.deletes(beforeCreation):
		c.wait("hook %s: %s of an earlier run is being deleted", event, ref)
		c.step(Step{Op: Delete, Ref: ref, UID: have.GetUID(), Why: fmt.Sprintf("hook %s %s runs anew", event, ref)})
	case have != nil:
		c.over(r, event, at, fmt.Sprintf("%s already exists, and its delete policy keeps it", ref))
	case h.Run.Phase != RunRunning:
		now := *r
		now.Hooks = slices.Clone(r.Hooks)
		now.Hooks[at].Run = Run{Phase: RunRunning, Started: c.in.Now}
		c.wait("hook %s: %s starts", event, ref)
		c.update(r, &now, fmt.Sprintf("hook %s %s starts", event, ref))
	default:
		made := bare(h.Content)
		metadata := entry(made, "metadata")
		if ref.Namespace != "" {
			metadata["namespace"] = ref.Namespace
		}
		entry(metadata, "annotations")[annotationRun] = c.runOf(r, event)
		c.wait("hook %s: %s is being created", event, ref)
		c.step(Step{Op: Create, Ref: ref, Manifest: made, Why: fmt.Sprintf("hook %s %s", event, ref)})
	}
}

// ran looks at how far a hook is that was created.
func (c *computation) ran(r *Record, event string, at int, have *unstructured.Unstructured) {
	ref := c.refOf(r.Hooks[at].Content)
	switch done, why := outcome(have); {
	case why != "":
		c.over(r, event, at, why)
	case done:
		c.over(r, event, at, "")
	default:
		c.wait("hook %s: %s runs", event, ref)
	}
}

// outcome of a hook's object: done, or why it failed. What is neither a Job nor a Pod is
// done when it exists.
func outcome(have *unstructured.Unstructured) (done bool, why string) {
	switch GVK(have.Object).GroupKind().String() {
	case "Job.batch":
		conditions, _, _ := unstructured.NestedSlice(have.Object, "status", "conditions")
		for _, condition := range conditions {
			if manifest.At(condition, "status") != "True" {
				continue
			}
			switch manifest.At(condition, "type") {
			case "Complete":
				return true, ""
			case "Failed":
				said, _ := manifest.At(condition, "message").(string)
				return true, fmt.Sprintf("the Job failed: %s", message.Quote(said))
			}
		}
		return false, ""
	case "Pod":
		switch text(have.Object, "status", "phase") {
		case "Succeeded":
			return true, ""
		case "Failed":
			return true, "the Pod failed: " + message.Quote(text(have.Object, "status", "message"))
		}
		return false, ""
	}
	return true, ""
}

// over notes the end of a hook.
func (c *computation) over(r *Record, event string, at int, why string) {
	ref := c.refOf(r.Hooks[at].Content)
	now := *r
	now.Hooks = slices.Clone(r.Hooks)
	run := &now.Hooks[at].Run
	run.Phase, run.Completed = RunSucceeded, c.in.Now
	if run.Started.IsZero() {
		run.Started = c.in.Now
	}
	if why == "" {
		now.Progress.Done++
		c.wait("hook %s: %s is over", event, ref)
		c.update(r, &now, fmt.Sprintf("hook %s %s succeeded", event, ref))
		return
	}
	run.Phase, now.Retried = RunFailed, c.in.Retry
	now.Description = fmt.Sprintf("hook %s %s failed: %s", event, ref, why)
	if r.Status != Uninstalling {
		now.Status = Failed
	}
	c.stall(ReasonHookFailed, "%s", now.Description)
	c.update(r, &now, now.Description)
}

// hookFailed keeps a release at what it is after a hook failed.
func (c *computation) hookFailed(r *Record, event string, mine []int, bad int) {
	c.failed = r.Description
	advice := fmt.Sprintf("Change the chart or its values, or annotate the AdvDeployment with %s=%d to try again", v1beta1.AnnotationRetry, r.Version)
	switch {
	case r.Status == Uninstalling:
		c.failed = ""
		advice = fmt.Sprintf("Annotate the AdvDeployment with %s=true to delete the release without its hooks", AnnotationSkipHooks)
	case c.in.Part:
		advice = "Change the chart or its values, or try again: kubectl tapp fleet retry " + c.in.OwnerName
	}
	c.stall(ReasonHookFailed, "%s. %s", r.Description, advice)
	c.cleanHooks(r, event, mine[bad:bad+1], failed)
	c.cleanHooks(r, event, mine[:bad], succeeded)
}

// cleanHooks deletes the objects of hooks by a policy. True: none is left.
func (c *computation) cleanHooks(r *Record, event string, mine []int, policy string) bool {
	clean := true
	for _, at := range mine {
		h := &r.Hooks[at]
		if !h.deletes(policy) {
			continue
		}
		ref := c.refOf(h.Content)
		have, known := c.see(ref)
		if !known {
			clean = false
			continue
		}
		if have == nil || have.GetAnnotations()[annotationRun] != c.runOf(r, event) {
			continue
		}
		clean = false
		c.poll(ref)
		c.refused(ref)
		c.wait("hook %s: %s is being deleted", event, ref)
		if have.GetDeletionTimestamp() == nil {
			c.step(Step{Op: Delete, Ref: ref, UID: have.GetUID(), Why: fmt.Sprintf("hook %s %s is over", event, ref)})
		}
	}
	return clean
}
