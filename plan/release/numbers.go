package release

import (
	"fmt"
	"slices"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/manifest"
	"tkestack.io/tapp/plan/message"
	"tkestack.io/tapp/plan/podset"
)

// count says how far the objects of a record are, whatever their kinds.
func (c *computation) count(r *Record) {
	n := &c.plan.Numbers
	n.Exists, n.Chart = true, r.Chart
	w, why := c.workload(r.Objects)
	if why != "" {
		c.stall(ReasonAmbiguous, "%s", why)
	}
	seen, current := c.survey(r.Objects, w)
	content := c.in.Want != nil && c.isWanted(r)
	if n.Workload == (Ref{}) && seen && c.in.Want != nil {
		// Nothing in it can be counted: it is there as a whole, or not.
		n.Current, n.Updated, n.Observed = n.Desired, n.Desired, true
		if current {
			n.Ready, n.Available = n.Desired, n.Desired
		}
	}
	if !content || r.Status != Deployed && c.writes(n.Workload) {
		n.Updated = 0
	}
	n.UpToDate = content && r.Status == Deployed && seen && len(c.plan.Steps) == 0 && len(c.plan.Stalls) == 0
}

// writes says whether the plan writes an object, which is not as it is to be then.
func (c *computation) writes(ref Ref) bool {
	return slices.ContainsFunc(c.plan.Steps, func(s Step) bool { return s.Record == nil && s.Ref == ref })
}

// survey looks at all objects of a record, of which w is the workload. seen: all of them
// exist. current: they are where their specs want them.
func (c *computation) survey(objects []Object, w int) (seen, current bool) {
	seen, current = true, true
	for i, o := range objects {
		ref := c.refOf(o.Content)
		have := c.in.Objects[ref]
		if have == nil {
			seen = false
			continue
		}
		if i == w || w < 0 && isDaemonSet(o.Content) && c.plan.Numbers.Workload == (Ref{}) {
			c.instances(ref, have)
		}
		if have.GetDeletionTimestamp() == nil {
			current = c.health(ref, have) && current
		}
	}
	return seen, current
}

func isDaemonSet(object map[string]any) bool {
	gvk := GVK(object)
	return gvk.Kind == "DaemonSet" && gvk.Group == "apps"
}

// instances of the workload, as its own controller tells them.
func (c *computation) instances(ref Ref, have *unstructured.Unstructured) {
	n := &c.plan.Numbers
	n.Workload = ref
	number := func(fields ...string) int32 {
		value, _, _ := unstructured.NestedInt64(have.Object, fields...)
		return int32(value)
	}
	generation, found, _ := unstructured.NestedInt64(have.Object, "status", "observedGeneration")
	n.Observed = found && generation >= have.GetGeneration()
	if template, ok := manifest.At(have.Object, "spec", "template").(map[string]any); ok {
		app := c.in.Name
		if c.in.Want != nil {
			app = c.in.Want.App
		}
		if main := mainContainer(template, app); main != nil {
			n.Version = podset.VersionOf(text(main, "image"))
		}
	}
	if ref.Kind == "DaemonSet" {
		n.Desired, n.Current = number("status", "desiredNumberScheduled"), number("status", "currentNumberScheduled")
		n.Updated, n.Ready, n.Available = number("status", "updatedNumberScheduled"), number("status", "numberReady"), number("status", "numberAvailable")
	} else {
		if c.in.Autoscaled[ref] {
			n.Desired = number("spec", "replicas")
		}
		n.Current, n.Ready, n.Available = number("status", "replicas"), number("status", "readyReplicas"), number("status", "availableReplicas")
		n.Updated = number("status", "updatedReplicas")
		if ref.Kind == "ReplicaSet" {
			n.Updated = n.Current
		}
	}
	if !n.Observed {
		n.Updated = 0
	}
}

// trueCondition of a type; nil: there is none, or it is not True.
func trueCondition(o *unstructured.Unstructured, kind string) map[string]any {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, entry := range conditions {
		if c, _ := entry.(map[string]any); c["type"] == kind && c["status"] == "True" {
			return c
		}
	}
	return nil
}

// health of an object by what its status says. True: it is where its spec wants it.
func (c *computation) health(ref Ref, have *unstructured.Unstructured) bool {
	result, err := status.Compute(have)
	switch {
	case err != nil || result.Status == status.CurrentStatus || result.Status == status.UnknownStatus:
		return true
	case result.Status == status.FailedStatus:
		reason := ReasonWorkloadFailed
		if ref.Kind == "TApp" && text(trueCondition(have, "Stalled"), "reason") == v1beta1.ReasonNodeLost {
			reason = v1beta1.ReasonNodeLost
		}
		c.stall(reason, "%s: %s", ref, message.Quote(result.Message))
	default:
		c.wait("%s", fmt.Sprintf("%s: %s", ref, message.Quote(result.Message)))
	}
	return false
}
