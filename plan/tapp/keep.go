package tapp

import (
	"k8s.io/apimachinery/pkg/api/meta"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/claim"
	"tkestack.io/tapp/plan/ids"
	"tkestack.io/tapp/plan/message"
	"tkestack.io/tapp/plan/template"
	"tkestack.io/tapp/plan/termination"
)

// inUse are the claims that are being deleted while a pod mounts them. Those that go by a
// policy of the TApp are none of them.
func (l *claims) inUse(all []*instance) termination.Claims {
	var out termination.Claims
	if l.tapp.DeletionTimestamp != nil {
		return out
	}
	for _, c := range l.byName {
		if c.DeletionTimestamp == nil {
			continue
		}
		if i := find(all, c.id); l.uses(i, c.Name) && !(!i.inRange && c.goes() && l.mayFollow(i)) {
			out.Add(termination.Of(i.id, c.PersistentVolumeClaim))
		}
	}
	return out
}

// uses says whether a pod of the TApp mounts the claim.
func (s *spec) uses(i *instance, name string) bool {
	return i != nil && i.pod != nil && i.state != foreign && claim.IsMounted(i.pod, name)
}

// foreseen are the claims in use that are being deleted, for a preview: as they were
// observed or, for who may not read claims, as the stored status tells.
func (s *spec) foreseen(in *Input, all []*instance) termination.Claims {
	if in.Claims != nil {
		return readClaims(s, in).inUse(all)
	}
	var out termination.Claims
	for _, c := range termination.Told(s.stored.Status.Conditions) {
		if i := find(all, c.Instance); s.uses(i, c.Name) && (i.inRange || !s.mayFollow(i)) {
			out.Add(c)
		}
	}
	return out
}

// keepsClaim says whether the pod has to stay since a claim that it mounts is being deleted,
// which would go with it, and has the instance wait for that. A pod that is being deleted
// already is not held.
func (s *spec) keepsClaim(i *instance) bool {
	holding := termination.Holding(i.pod, s.terminating.Of(i.id))
	if len(holding) == 0 || i.pod.DeletionTimestamp != nil {
		return false
	}
	verb := "restart"
	if s.intentOf(i).kind == stop {
		verb = "kill"
	}
	i.wait(termination.Reason, termination.Why(holding, verb, s.tapp.Name))
	return true
}

// isKept says whether only somebody takes the instance further: its pod keeps a claim, or an image differs.
func (m *summary) isKept(i *instance) bool {
	return i.reason == template.ReasonImageDiffers || i.reason == termination.Reason && i.pod != nil && len(m.terminating.Of(i.id)) > 0
}

// isUnderWay says whether the instance is not where the spec wants it.
func (i *instance) isUnderWay() bool {
	switch {
	case len(i.actions) > 0 || i.claimsLeft:
		return true
	case i.desired():
		return !i.available || !i.updated || i.state == alive && isRestartRequested(i.pod)
	}
	return i.pod != nil && i.state != foreign && !i.completed
}

// whyKept tells of all instances that are kept for a reason.
func (m *summary) whyKept(reason string) []string {
	var kept ids.Whys
	for _, i := range m.instances {
		if m.isKept(i) && i.reason == reason {
			kept.Add(i.why, i.id)
		}
	}
	return kept.Texts()
}

// concludeTerminating sets the condition ClaimTerminating.
func (m *summary) concludeTerminating(s *tappv1.TAppStatus) {
	var texts []string
	for _, c := range m.terminating.All() {
		texts = append(texts, c.String())
	}
	if len(texts) > 0 {
		m.set(s, tappv1.ConditionClaimTerminating, true, termination.GoesWithItsPod, message.Join(texts, "; "))
	} else if meta.IsStatusConditionTrue(s.Conditions, tappv1.ConditionClaimTerminating) {
		m.set(s, tappv1.ConditionClaimTerminating, false, termination.NoneTerminating, "no claim that a pod mounts is being deleted")
	}
}
