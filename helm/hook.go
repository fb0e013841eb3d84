package helm

import (
	"slices"
	"strings"
	"time"
)

// The events at which hooks run. Tests are run by `helm test` alone.
const (
	PreInstall   = "pre-install"
	PostInstall  = "post-install"
	PreUpgrade   = "pre-upgrade"
	PostUpgrade  = "post-upgrade"
	PreDelete    = "pre-delete"
	PostDelete   = "post-delete"
	PreRollback  = "pre-rollback"
	PostRollback = "post-rollback"
	Test         = "test"
)

// When the object of a hook is deleted.
const (
	// BeforeHookCreation: before the hook runs the next time. It is helm's default.
	BeforeHookCreation = "before-hook-creation"
	HookSucceeded      = "hook-succeeded"
	HookFailed         = "hook-failed"
)

// Phases of a hook's last run, as helm records them.
const (
	HookPhaseUnknown   = "Unknown"
	HookPhaseRunning   = "Running"
	HookPhaseSucceeded = "Succeeded"
	HookPhaseFailed    = "Failed"
)

// Hook is an object that is applied at certain events, and waited for. The fields and
// their names in JSON are helm's.
type Hook struct {
	Name string `json:"name,omitempty"`
	Kind string `json:"kind,omitempty"`
	// Path of its template.
	Path     string   `json:"path,omitempty"`
	Manifest string   `json:"manifest,omitempty"`
	Events   []string `json:"events,omitempty"`
	LastRun  HookRun  `json:"last_run"`
	// Weight orders the hooks of one event, the smallest first.
	Weight            int      `json:"weight,omitempty"`
	DeletePolicies    []string `json:"delete_policies,omitempty"`
	OutputLogPolicies []string `json:"output_log_policies,omitempty"`
}

// HookRun is when a hook ran last, and how it went.
type HookRun struct {
	StartedAt   time.Time `json:"started_at,omitzero"`
	CompletedAt time.Time `json:"completed_at,omitzero"`
	Phase       string    `json:"phase"`
}

// HooksFor gives the hooks of an event in the order in which they run, one after the
// other: by weight, then by name. Those of one weight and name stay sorted by kind.
func HooksFor(hooks []Hook, event string) []Hook {
	var out []Hook
	for _, h := range hooks {
		if slices.Contains(h.Events, event) {
			out = append(out, h)
		}
	}
	slices.SortStableFunc(out, func(a, b Hook) int {
		if a.Weight != b.Weight {
			return a.Weight - b.Weight
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out
}

// Deletes says whether the hook's object is deleted by this policy. Helm never deletes
// a CustomResourceDefinition.
func (h *Hook) Deletes(policy string) bool {
	if h.Kind == "CustomResourceDefinition" {
		return false
	}
	if len(h.DeletePolicies) == 0 {
		return policy == BeforeHookCreation
	}
	return slices.Contains(h.DeletePolicies, policy)
}
