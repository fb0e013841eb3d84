// Package tally tells in sentences how far the instances of a TApp are, by their counts.
package tally

import (
	"fmt"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// Tally of the instances.
type Tally struct {
	// Deleting: the TApp is being deleted.
	Deleting                    bool
	Desired, Available, Updated int
	Left                        int // pods that are to go, or going
	Claims                      int // instances whose claims are to go
	Owners                      int // claims that do not follow whenDeleted yet
	Restarts                    int // requested, and not begun
	Completed, Failed           int
	Paused                      int
	// Differs: no more than images that somebody overwrote is left.
	Differs bool
}

// Ready is the condition of that name. Settled: nothing is left to do.
func (t *Tally) Ready(settled bool, progress string) (is bool, reason, text string) {
	completed := fmt.Sprintf("%d of %d available, %d completed", t.Available, t.Desired+t.Completed, t.Completed)
	switch {
	case t.Deleting:
		return false, "Deleting", "it is being deleted; " + progress
	case settled && t.Failed > 0:
		return false, "InstancesFailed", fmt.Sprintf("%s: %d instances failed, and stay as they ended", completed, t.Failed)
	case settled && t.Completed > 0:
		return true, "Available", completed
	case settled:
		return true, "Available", fmt.Sprintf("all %d instances are available and follow their template", t.Desired)
	}
	if t.Differs {
		return false, "ImageDiffers", progress
	}
	return false, "NotAvailable", progress
}

// Progress is a sentence. Growing tells of claims that have not grown yet, and held of the
// instance that is told of.
func (t *Tally) Progress(growing, held string) string {
	progress := fmt.Sprintf("%d of %d instances are available, %d follow their template", t.Available, t.Desired, t.Updated)
	if t.Completed > 0 {
		progress += fmt.Sprintf(", %d completed", t.Completed)
	}
	if t.Left > 0 {
		progress += fmt.Sprintf("; pods that are to go: %d", t.Left)
	}
	if t.Claims > 0 {
		progress += fmt.Sprintf("; instances whose claims are to go: %d", t.Claims)
	}
	if t.Owners > 0 {
		progress += fmt.Sprintf("; claims that are to follow persistentVolumeClaimRetentionPolicy.whenDeleted: %d", t.Owners)
	}
	if t.Restarts > 0 {
		progress += fmt.Sprintf("; restarts that are to come: %d", t.Restarts)
	}
	for _, more := range [2]string{growing, held} {
		if more != "" {
			progress += "; " + more
		}
	}
	return progress
}

// AppStatus sums up the statuses of the instances, in the words of the original.
func AppStatus(statuses map[string]tappv1.InstanceStatus) tappv1.AppStatus {
	counts := map[tappv1.InstanceStatus]int{}
	for _, s := range statuses {
		counts[s]++
	}
	failed, succ, killed := counts[tappv1.InstanceFailed], counts[tappv1.InstanceSucc], counts[tappv1.InstanceKilled]
	switch {
	case len(statuses) == 0:
		return tappv1.AppPending
	case failed+succ+killed < len(statuses):
		return tappv1.AppRunning
	case failed > 0:
		return tappv1.AppFailed
	case succ > 0:
		return tappv1.AppSucc
	}
	return tappv1.AppKilled
}
