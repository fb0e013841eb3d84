package tapp

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/webhook/rule"
)

// findOverlap warns of other TApps whose pods the selector selects too, or that
// select the pods of this one.
func (v *Validator) findOverlap(ctx context.Context, c candidate, w *rule.Warnings) {
	if c.was != nil && sameLabels(c.now, c.was) {
		return
	}
	others, err := v.reads.TApps(ctx, c.now.Namespace)
	if err != nil {
		klog.FromContext(ctx).V(2).Info("No search for overlapping selectors", "tapp", klog.KObj(c.now), "reason", err.Error())
		return
	}
	var texts []string
	for _, other := range others {
		if ctx.Err() != nil {
			return
		}
		if other.Name != c.now.Name && (selects(c.now, other) || selects(other, c.now)) {
			texts = append(texts, fmt.Sprintf("spec.selector: it overlaps with that of TApp %s; Services and budgets that use it mean the pods of both. Give each a label of its own", other.Name))
		}
	}
	w.Add("Overlap", texts...)
}

// sameLabels says whether an update leaves the labels of all templates alone, on
// which overlaps depend.
func sameLabels(now, was *tappv1.TApp) bool {
	for t := range templatesOf(now) {
		before := templateOf(was, t.name)
		if before == nil || !labels.Equals(tappv1.WithoutHashLabels(t.Labels), tappv1.WithoutHashLabels(before.Labels)) {
			return false
		}
	}
	return true
}

// selects says whether the selector of one TApp selects pods of another one.
func selects(one, other *tappv1.TApp) bool {
	if one.Spec.Selector == nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(one.Spec.Selector)
	if err != nil || selector.Empty() {
		return false
	}
	for t := range templatesOf(other) {
		if selector.Matches(labels.Set(t.Labels)) {
			return true
		}
	}
	return false
}
