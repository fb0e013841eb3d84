package tapp

import (
	"context"
	"fmt"

	"k8s.io/klog/v2"

	"tkestack.io/tapp/plan/claim"
	"tkestack.io/tapp/webhook/rule"
)

// findClaimNames warns of other TApps whose claims can have the names of this one's, when it
// is created: names of TApps and of claim templates cannot change later.
func (v *Validator) findClaimNames(ctx context.Context, c candidate, w *rule.Warnings) {
	if c.was != nil || len(c.now.Spec.VolumeClaimTemplates) == 0 {
		return
	}
	others, err := v.reads.TApps(ctx, c.now.Namespace)
	if err != nil {
		klog.FromContext(ctx).V(2).Info("No search for claims of the same names", "tapp", klog.KObj(c.now), "reason", err.Error())
		return
	}
	us := claim.OfTApp(c.now)
	var texts []string
	for _, other := range others {
		them := claim.OfTApp(other)
		for _, x := range us.Collisions(&them) {
			texts = append(texts, fmt.Sprintf("spec.volumeClaimTemplates: %s of TApp %s and %s of TApp %s make claims of the same names, %s-<id>; an instance waits (NameTaken) for a claim that is the other's. Give the template another name",
				x.Template, us.Name, x.Other, them.Name, x.Stem))
		}
	}
	w.Add("ClaimNames", texts...)
}
