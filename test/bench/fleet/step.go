package fleet

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/test/bench/record"
)

// step rolls another image out, member by member: how soon after the last status of one is
// the next one written to?
func (h *hub) step(ctx context.Context, save func(record.Fleet) error) error {
	var took []time.Duration
	for i := range rollouts {
		h.forget()
		name := fmt.Sprintf("app-%d", i)
		watching, stop := context.WithCancel(ctx)
		seen, err := h.shows(watching, name, func(a *v1beta1.AppSet) bool {
			r := a.Status.Rollout
			return a.Generation > 1 && a.Status.ObservedGeneration == a.Generation && r != nil && r.State == "Done"
		})
		if err == nil {
			patch := `[{"op": "replace", "path": "/spec/podSpec/template/spec/containers/0/image", "value": "httpd"}]`
			_, err = h.appSets.Patch(ctx, name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
		}
		if err == nil {
			select {
			case <-seen:
				took = append(took, h.steps(name)...)
			case <-time.After(patience):
				err = fmt.Errorf("the rollout of AppSet %s does not end", name)
			}
		}
		stop()
		if err != nil {
			return err
		}
	}
	if len(took) < rollouts*(len(h.members)-1) {
		return fmt.Errorf("%d steps were seen of %d rollouts in %d members", len(took), rollouts, len(h.members))
	}
	return save(record.Fleet{Name: record.FleetStep, Members: len(h.members), AppSets: someParts, Spread: record.SpreadOf(took)})
}

// steps of a rollout, from the last status of one member before the next one is written to.
func (h *hub) steps(name string) (out []time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	begun := map[string]bool{}
	for _, w := range h.applied {
		if w.name != name || begun[w.member] {
			continue
		}
		begun[w.member] = true
		last := time.Time{}
		for _, s := range h.told {
			if s.name == name && s.member != w.member && s.at.Before(w.at) && s.at.After(last) {
				last = s.at
			}
		}
		if !last.IsZero() {
			out = append(out, w.at.Sub(last))
		}
	}
	return out
}
