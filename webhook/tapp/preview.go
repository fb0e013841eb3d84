package tapp

import (
	"context"

	"k8s.io/klog/v2"

	"tkestack.io/tapp/plan/effect"
	plan "tkestack.io/tapp/plan/tapp"
	"tkestack.io/tapp/plan/view"
	"tkestack.io/tapp/webhook/rule"
)

// preview tells the user what an update will do to the instances.
func (v *Validator) preview(ctx context.Context, c candidate, w *rule.Warnings) {
	if c.was == nil {
		return
	}
	pods, err := v.reads.Pods(ctx, c.now)
	if err != nil {
		// An update need not wait for advice.
		klog.FromContext(ctx).V(2).Info("No preview", "tapp", klog.KObj(c.now), "reason", err.Error())
		w.Add("Preview", "what this update will do to the instances cannot be told: their pods could not be read")
		return
	}
	var texts []string
	updates := false
	in := plan.Input{TApp: c.now, Pods: pods}
	if c.now.Spec.UpdateStrategy.InPlaceUpdate.Resources {
		in.Policy.Resize = v.reads.Resize(ctx)
	}
	for _, step := range plan.Preview(in) {
		texts = append(texts, step.String())
		updates = updates || step.Effect == effect.UpdateInPlace || step.Effect == effect.Recreate || step.Effect == effect.Resize || step.Effect == effect.Relabel
	}
	if view.UsesOtherTemplates(&c.now.Spec) {
		texts = append(texts, view.Observe(in).Notes(c.was)...)
	}
	if updates && c.now.Spec.Paused {
		texts = append(texts, "spec.paused is true: updates start when it is false, and pods that are lost until then come back as they were")
	}
	w.Add("Preview", texts...)
}
