package appset

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
)

// tellVerdict in what the status says of a podSet.
func (c *computation) tellVerdict(s *site, p *v1beta1.PodSetStatus) {
	p.ProgressedAt = nil // the member's own is by its own clock
	v := c.verdict(s.Name, p.Name)
	if v == nil {
		return
	}
	if !v.Progress.At.IsZero() {
		p.ProgressedAt = new(metav1.NewTime(v.Progress.At))
	}
	if v.Why != "" && p.Message == "" {
		p.Reason, p.Message = ReasonHeld, v.Why
	}
}

// tellRollout in the status.
func (c *computation) tellRollout(s *v1beta1.AppSetStatus) {
	s.Rollout = podset.RolloutStatus(&c.rolling.decision)
}
