// Package deferral says which statuses of a TApp may wait for the next one.
package deferral

import (
	"maps"

	"k8s.io/apimachinery/pkg/api/meta"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// Allows says whether a status tells of nothing but work that goes well and goes
// on, so that another one follows soon and it may wait for that: no plan hangs on it,
// and whoever reads the stored one meanwhile sees that it is about an older generation,
// or that instances are on their way.
func Allows(t *tappv1.TApp, next *tappv1.TAppStatus) bool {
	stored := &t.Status
	switch {
	case !meta.IsStatusConditionTrue(next.Conditions, tappv1.ConditionProgressing),
		meta.IsStatusConditionTrue(next.Conditions, tappv1.ConditionStalled),
		meta.IsStatusConditionTrue(stored.Conditions, tappv1.ConditionStalled):
		return false
	case stored.ObservedGeneration == next.ObservedGeneration && meta.IsStatusConditionTrue(stored.Conditions, tappv1.ConditionReady):
		return false // something has happened, and the spec is as it was
	case stored.ObservedGeneration <= 0:
		return stored.ObservedGeneration < 0 && remembersNothing(t, next)
	}
	return remembersSame(t, next)
}

// remembersNothing says whether a TApp's first status has nothing that only it knows.
// Its revision is that of the spec, and so is the selector where the spec states one.
// Which instances there were, a later plan asks only for the sake of their claims. That
// none is stored an observedGeneration of -1 says, which kstatus waits for.
func remembersNothing(t *tappv1.TApp, first *tappv1.TAppStatus) bool {
	for _, is := range first.Statuses {
		if isEnd(is) || isTrouble(is) {
			return false
		}
	}
	return t.Spec.Selector != nil && len(t.Spec.VolumeClaimTemplates) == 0 && len(first.Nodes) == 0 && len(first.Failures) == 0 &&
		meta.FindStatusCondition(first.Conditions, tappv1.ConditionForceDeleted) == nil &&
		!meta.IsStatusConditionTrue(first.Conditions, tappv1.ConditionReplicaFailure) && !meta.IsStatusConditionTrue(first.Conditions, tappv1.ConditionClaimTerminating)
}

// isTrouble says whether an instance has lost its pod on its own. The next pod may be
// there soon, and then nobody would ever read of it.
func isTrouble(s tappv1.InstanceStatus) bool {
	return s == tappv1.InstancePodFailed || s == tappv1.InstancePodSucc || s == tappv1.InstanceUnknown
}

// remembersSame says whether a status is as the stored one in what only that knows:
// later plans, or people, go by it when the pods that it is about are gone.
func remembersSame(t *tappv1.TApp, next *tappv1.TAppStatus) bool {
	stored := &t.Status
	if stored.ScaleLabelSelector != next.ScaleLabelSelector || stored.CurrentRevision != next.CurrentRevision ||
		!maps.Equal(stored.Nodes, next.Nodes) || !remembersInstances(t, next) {
		return false
	}
	for _, news := range []string{tappv1.ConditionReplicaFailure, tappv1.ConditionClaimTerminating} {
		if meta.IsStatusConditionTrue(stored.Conditions, news) != meta.IsStatusConditionTrue(next.Conditions, news) {
			return false // others wait for it
		}
	}
	was, is := meta.FindStatusCondition(stored.Conditions, tappv1.ConditionForceDeleted), meta.FindStatusCondition(next.Conditions, tappv1.ConditionForceDeleted)
	return was == is || was != nil && is != nil && was.Status == is.Status && was.Message == is.Message
}

// remembersInstances says whether a status is as the stored one in what it tells of
// instances that have no pod: how they ended, how often they failed and, if there can be
// any, whose claims are left.
func remembersInstances(t *tappv1.TApp, next *tappv1.TAppStatus) bool {
	stored := t.Status.Statuses
	whatever := func(_, _ tappv1.InstanceStatus) bool { return true }
	if len(t.Spec.VolumeClaimTemplates) > 0 && !maps.EqualFunc(stored, next.Statuses, whatever) {
		return false
	}
	for id, was := range stored {
		if isEnd(was) && next.Statuses[id] != was {
			return false
		}
	}
	for id, is := range next.Statuses {
		if n := next.Failures[id]; (isEnd(is) || isTrouble(is)) && stored[id] != is || n != 0 && n != t.Status.Failures[id] {
			return false // failures that are dropped, a pod tells of
		}
	}
	return true
}

func isEnd(s tappv1.InstanceStatus) bool {
	return s == tappv1.InstanceFailed || s == tappv1.InstanceSucc
}
