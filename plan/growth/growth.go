// Package growth says whether a claim has the size that its template requests, what brings
// it there, and how far it is.
package growth

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"tkestack.io/tapp/plan/message"
)

// Growth of a claim towards its template.
type Growth struct {
	// Growing says whether the claim has still to get there.
	Growing bool
	// Patch is the strategic merge patch that brings the claim's request to that of its
	// template; nil: there is nothing to write. Reason and Why are those of the patch.
	Patch       []byte
	Reason, Why string
}

// Of a claim. One without a volume cannot grow yet. One that requests more than its
// template stays so, unless its storage says that it never will have it.
func Of(template, c *corev1.PersistentVolumeClaim) Growth {
	want, ok := template.Spec.Resources.Requests[corev1.ResourceStorage]
	if !ok {
		return Growth{}
	}
	has := c.Spec.Resources.Requests[corev1.ResourceStorage]
	capacity, known := c.Status.Capacity[corev1.ResourceStorage]
	g := Growth{Growing: true, Reason: "ClaimGrows",
		Why: fmt.Sprintf("spec.volumeClaimTemplates[%s] requests %s, and the claim %s", template.Name, want.String(), has.String())}
	switch less := want.Cmp(has); {
	case less > 0:
		if c.Status.Phase != corev1.ClaimBound {
			return Growth{Growing: true}
		}
	case !known || capacity.Cmp(want) >= 0:
		return Growth{}
	case less == 0 || !isInfeasible(c):
		return Growth{Growing: true}
	default:
		g.Reason, g.Why = "ResizeInfeasible", g.Why+", which its storage cannot provide"
	}
	g.Patch, _ = json.Marshal(map[string]any{ // strings always marshal
		"metadata": map[string]any{"uid": c.UID},
		"spec":     map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": want.String()}}},
	})
	return g
}

// Infeasible says why a claim never will have the size of its template by itself; nothing:
// it may have it yet.
func Infeasible(template, c *corev1.PersistentVolumeClaim) string {
	want := template.Spec.Resources.Requests[corev1.ResourceStorage]
	if want.Cmp(c.Spec.Resources.Requests[corev1.ResourceStorage]) != 0 || !isInfeasible(c) {
		return ""
	}
	return fmt.Sprintf("claim %s cannot grow: %s; give its template a size that the storage class can provide", c.Name, whyInfeasible(c))
}

// Progress says how far a claim that grows is.
func Progress(template, c *corev1.PersistentVolumeClaim) string {
	for _, x := range c.Status.Conditions {
		if x.Type == corev1.PersistentVolumeClaimFileSystemResizePending && x.Status == corev1.ConditionTrue {
			return fmt.Sprintf("claim %s has grown, and its file system follows when the pod mounts it", c.Name)
		}
	}
	if c.Status.Phase != corev1.ClaimBound {
		return fmt.Sprintf("claim %s has no volume yet, and grows when it has one", c.Name)
	}
	capacity := c.Status.Capacity[corev1.ResourceStorage]
	want := template.Spec.Resources.Requests[corev1.ResourceStorage]
	return fmt.Sprintf("claim %s has %s of %s", c.Name, capacity.String(), want.String())
}

// isInfeasible says whether the storage has told that the claim will never have
// the size that it requests. What it told of another size is no news.
func isInfeasible(c *corev1.PersistentVolumeClaim) bool {
	tried, known := c.Status.AllocatedResources[corev1.ResourceStorage]
	if known && tried.Cmp(c.Spec.Resources.Requests[corev1.ResourceStorage]) != 0 {
		return false
	}
	switch c.Status.AllocatedResourceStatuses[corev1.ResourceStorage] {
	case corev1.PersistentVolumeClaimControllerResizeInfeasible, corev1.PersistentVolumeClaimNodeResizeInfeasible:
		return true
	}
	return false
}

// whyInfeasible is what the storage says, if it gives a reason.
func whyInfeasible(c *corev1.PersistentVolumeClaim) string {
	for _, x := range c.Status.Conditions {
		if (x.Type == corev1.PersistentVolumeClaimControllerResizeError || x.Type == corev1.PersistentVolumeClaimNodeResizeError) &&
			x.Status == corev1.ConditionTrue && x.Message != "" {
			return message.Quote(x.Message)
		}
	}
	return "its storage says that the size is infeasible"
}

// Claim that is to grow, with its template.
type Claim struct {
	*corev1.PersistentVolumeClaim
	Template *corev1.PersistentVolumeClaim
}

// Why tells of the claim that tells most, of at least one that has not grown yet; infeasible
// is true when it never will by itself.
func Why(growing []Claim) (why string, infeasible bool) {
	why = Progress(growing[0].Template, growing[0].PersistentVolumeClaim)
	for _, c := range growing {
		if never := Infeasible(c.Template, c.PersistentVolumeClaim); never != "" {
			why, infeasible = never, true
			break
		}
	}
	return fmt.Sprintf("claims that are to grow: %d, %s", len(growing), why), infeasible
}
