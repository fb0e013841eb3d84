package tapp

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/claim"
	"tkestack.io/tapp/plan/growth"
	"tkestack.io/tapp/plan/ids"
	"tkestack.io/tapp/plan/ownership"
	"tkestack.io/tapp/plan/termination"
)

// ReasonClaimUnlabelled is the reason for creating a claim that most likely exists, and
// that a pod of the instance mounts: it lacks the label of its instance.
const ReasonClaimUnlabelled = "ClaimUnlabelled"

const (
	reasonNameTaken     = "NameTaken"
	reasonClaimTracked  = "ClaimTracked"
	reasonClaimUnclear  = "ClaimUnclear"
	reasonClaimUnmarked = "ClaimUnmarked"
	reasonRetention     = "RetentionPolicyChanged"
)

// claims are those that carry the name of one of the TApp's instances.
type claims struct {
	*spec
	us     claim.Workload
	unread set // names of workloads that have to be read to tell whose a claim is
	// byName are all, whoever owns them; own are those that are not proven another's, by
	// name.
	byName map[string]*instanceClaim
	own    []*instanceClaim
}

// instanceClaim is a claim of an instance, with the claim template that it came from.
type instanceClaim struct {
	*corev1.PersistentVolumeClaim
	template *corev1.PersistentVolumeClaim
	id       int
	claim.Verdict
}

// MakerOf is the TApp as one of the workloads that make claims.
func MakerOf(t *tappv1.TApp, p Policy) claim.Workload { return claim.Maker(defaulted(t), p.Tracking) }

// readClaims finds the instances' claims, in a fixed order, and tells whose each is.
// Another's are not the TApp's to change.
func readClaims(s *spec, in *Input) *claims {
	l := &claims{spec: s}
	if len(s.tapp.Spec.VolumeClaimTemplates) == 0 {
		return l
	}
	l.us, l.byName = claim.Maker(s.tapp, s.policy.Tracking), make(map[string]*instanceClaim, len(in.Claims))
	pool := make([]instanceClaim, 0, len(in.Claims)) // no claim comes from two templates
	for t := range s.tapp.Spec.VolumeClaimTemplates {
		template := &s.tapp.Spec.VolumeClaimTemplates[t]
		for _, c := range in.Claims {
			id, ok := ids.InName(template.Name+"-"+s.tapp.Name, c.Name)
			if !ok {
				continue
			}
			pool = append(pool, instanceClaim{c, template, id, l.us.Judge(c, strconv.Itoa(id), in.Workloads)})
			has := &pool[len(pool)-1]
			l.byName[c.Name] = has
			for _, name := range has.Unread {
				l.unread.add(name)
			}
			if has.Use != claim.Taken || has.isOwned(s.tapp) {
				l.own = append(l.own, has)
			}
		}
	}
	slices.SortFunc(l.own, func(a, b *instanceClaim) int { return strings.Compare(a.Name, b.Name) })
	return l
}

// createFor creates the claims that the instance has not got. It is false until all are
// there: one that is not observed may be another's. It is false, too, while one of them is
// being deleted, is another's, or is not marked as the TApp's: a pod that mounted it would
// lose it, or share it.
func (l *claims) createFor(i *instance) (all bool) {
	all = true
	for _, t := range l.tapp.Spec.VolumeClaimTemplates {
		name := claim.Name(t.Name, l.tapp.Name, i.name)
		if c, ok := l.byName[name]; ok {
			switch {
			case c.DeletionTimestamp != nil:
				i.wait(termination.Reason, "its claim "+name+" is being deleted, and a new one is made when it is gone")
				return false
			case c.Use == claim.Taken:
				i.wait(reasonNameTaken, c.Why+"; the instance waits until it is gone")
				return false
			case c.Use == claim.Unclear:
				i.wait(reasonClaimUnclear, "whose the claim "+name+" is cannot be told before the workloads that can make a claim of this name have been read")
				return false
			case !c.Marked:
				i.wait(reasonClaimUnmarked, "its pod follows when its claim "+name+" is marked as the TApp's")
				return false
			}
			continue
		}
		i.act(Action{Op: OpCreateClaim, Claim: l.newClaim(&t, name, i),
			Reason: "ClaimMissing", Why: "the claim of spec.volumeClaimTemplates[" + t.Name + "] does not exist"})
		all = false
	}
	return all
}

// waitFor says whether a claim of the instance is being deleted and cannot go before its
// pod, which ended: Kubernetes keeps a claim for as long as a pod mounts it, running or
// not.
func (l *claims) waitFor(i *instance) bool {
	for _, t := range l.tapp.Spec.VolumeClaimTemplates {
		name := claim.Name(t.Name, l.tapp.Name, i.name)
		if c := l.byName[name]; c != nil && c.DeletionTimestamp != nil && claim.IsMounted(i.pod, name) {
			return true
		}
	}
	return false
}

func (l *claims) newClaim(t *corev1.PersistentVolumeClaim, name string, i *instance) *corev1.PersistentVolumeClaim {
	c := l.us.New(t, l.tapp.Namespace, name, i.name)
	if l.ownsClaims() {
		c.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(l.tapp, tappv1.GroupVersionKind())}
	}
	maps.Copy(c.Annotations, l.us.Spare(c, claim.Verdict{Use: claim.Ours}))
	return c
}

// ownsClaims says whether the claims go with the TApp.
func (s *spec) ownsClaims() bool {
	return s.tapp.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted == tappv1.DeletePersistentVolumeClaim
}

// withoutPods makes instances of the ids that are not among the given ones, and have
// claims with which something is to be done.
func (l *claims) withoutPods(byID map[int]*instance) []*instance {
	var out []*instance
	for _, c := range l.own {
		i := byID[c.id]
		if i != nil && (i.inRange || i.pod != nil) {
			continue
		}
		isNew := i == nil
		if isNew {
			i = &instance{id: c.id, name: strconv.Itoa(c.id)}
		}
		left := c.goes() && l.areLeft(i)
		if !left && !l.owesOwner(c) && l.us.Spare(c.PersistentVolumeClaim, c.Verdict) == nil {
			continue
		}
		i.claimsLeft = i.claimsLeft || left
		if isNew {
			byID[i.id] = i
			out = append(out, i)
		}
	}
	return out
}

// areLeft says whether the claims of an id without a pod are to go with
// whenScaled Delete. That it was scaled down just now, and not long ago under
// another policy, the stored status tells: it lists an id until its claims are
// gone. An instance that was killed when it was scaled down keeps its claims.
func (s *spec) areLeft(i *instance) bool {
	_, listed := s.tapp.Status.Statuses[i.name]
	return listed && s.mayFollow(i)
}

// mayFollow says whether whenScaled deletes claims of the id when it is out of range.
func (s *spec) mayFollow(i *instance) bool {
	return s.claimsFollow() && s.tapp.Status.Statuses[i.name] != tappv1.InstanceKilled && s.tapp.Spec.Statuses[i.name] != tappv1.InstanceKilled
}

// goes says whether a policy may delete the claim, now or when it is marked.
func (c *instanceClaim) goes() bool {
	return c.Proven || c.Use == claim.Unclear || c.Use == claim.Ours && !c.Found
}

// claimsFollow says whether the claims of instances that are scaled down go with them.
func (s *spec) claimsFollow() bool {
	return !s.idsInvalid && s.tapp.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled == tappv1.DeletePersistentVolumeClaim
}

// followClaims deletes the claims of instances that a scale-down removed, marks those that
// are used, makes the TApp the owner of those that go with it, and lets them grow with
// their template. It returns those that have not grown yet.
func followClaims(s *spec, now *clock, l *claims, all []*instance) (growing []growth.Claim) {
	l.label(now, all)
	byID := make(map[int]*instance, len(l.own))
	if len(l.own) > 0 {
		for _, i := range all {
			byID[i.id] = i
		}
	}
	for _, c := range l.own {
		i := byID[c.id]
		if c.DeletionTimestamp != nil || i == nil || c.Use == claim.Unclear {
			continue
		}
		if i.claimsLeft && c.Proven {
			i.act(Action{Op: OpDeleteClaim, Claim: c.PersistentVolumeClaim, Reason: "ScaledDown",
				Why: s.ids.Why() + ", and spec.persistentVolumeClaimRetentionPolicy.whenScaled is Delete"})
			continue
		}
		if s.frozen != "" {
			continue
		}
		l.mark(i, c)
		if c.Labels[tappv1.LabelInstanceID] != i.name {
			continue
		}
		l.followOwner(i, c)
		if !i.inRange || c.Use != claim.Ours {
			continue
		}
		size := growth.Of(c.template, c.PersistentVolumeClaim)
		if size.Patch != nil {
			i.act(Action{Op: OpUpdateClaim, Claim: c.PersistentVolumeClaim, Patch: size.Patch, Reason: size.Reason, Why: size.Why})
		}
		if size.Growing {
			growing = append(growing, growth.Claim{Template: c.template, PersistentVolumeClaim: c.PersistentVolumeClaim})
		}
	}
	return growing
}

// mark marks a claim that an instance uses, and one that is to go: nothing goes unmarked. Of
// all others Argo CD is told to leave them.
func (l *claims) mark(i *instance, c *instanceClaim) {
	patch, why := l.us.SparePatch(c.PersistentVolumeClaim, c.Verdict)
	reason := reasonClaimTracked
	if !c.Marked && c.Use == claim.Ours && (i.inRange || i.claimsLeft && c.goes()) {
		reason = reasonClaimUnmarked
		patch, why = l.us.Take(c.PersistentVolumeClaim, i.name, c.Verdict)
	}
	if patch != nil {
		i.act(Action{Op: OpUpdateClaim, Claim: c.PersistentVolumeClaim, Patch: patch, Reason: reason, Why: why})
	}
}

// kept tells of the claims that stay after a scale-down although whenScaled is Delete.
func (l *claims) kept() string {
	var names []string
	for _, c := range l.own {
		if c.Found && c.Marked && c.DeletionTimestamp == nil && l.claimsFollow() && !l.ids.Has(c.id) {
			names = append(names, c.Name)
		}
	}
	return claim.Kept(names)
}

// keepClaims takes a TApp that is being deleted off the claims that its policy keeps: one
// that was set just before has not reached all of them. The garbage collector may be
// faster. What it has begun to delete cannot be kept.
func keepClaims(s *spec, l *claims, all []*instance) {
	if s.ownsClaims() {
		return
	}
	for _, i := range all {
		for _, c := range l.own {
			if c.id == i.id && c.DeletionTimestamp == nil {
				l.followOwner(i, c)
			}
		}
	}
}

// label gives the claims of running pods that were not observed the label by which
// they are: tkestack/tapp did not label claims.
func (l *claims) label(c *clock, all []*instance) {
	for _, i := range all {
		if i.state != alive || !i.desired() || i.template == nil {
			continue
		}
		for t := range l.tapp.Spec.VolumeClaimTemplates {
			template := &l.tapp.Spec.VolumeClaimTemplates[t]
			name := claim.Name(template.Name, l.tapp.Name, i.name)
			if c := l.byName[name]; c != nil && c.Use == claim.Taken && claim.IsMounted(i.pod, name) {
				i.wait(reasonNameTaken, c.Why+"; its pod, which mounts it nevertheless, is not recreated: no other could follow")
				if l.intentOf(i).kind == recreate {
					i.next = intent{kind: keep}
				}
			}
			if l.byName[name] == nil && claim.IsMounted(i.pod, name) && l.mayCreate(c) {
				i.act(Action{Op: OpCreateClaim, Claim: l.newClaim(template, name, i),
					Reason: ReasonClaimUnlabelled, Why: "the claim that the pod mounts lacks the label of its instance"})
			}
		}
	}
}

func (c *instanceClaim) isOwned(t *tappv1.TApp) bool {
	return slices.ContainsFunc(c.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == t.UID })
}

// owesOwner says whether the TApp is to become, or to cease to be, among the owners of a
// claim.
func (l *claims) owesOwner(c *instanceClaim) bool {
	if c.Use == claim.Unclear {
		return false
	}
	return c.isOwned(l.tapp) != (l.ownsClaims() && c.Use == claim.Ours && !c.Found)
}

// followOwner keeps the TApp among the owners of a claim exactly while the policy
// says that the claim goes with it. tkestack/tapp always was the owner.
func (l *claims) followOwner(i *instance, c *instanceClaim) {
	if !l.owesOwner(c) {
		return
	}
	patch, why := ownership.Drop(l.tapp, c.UID), fmt.Sprintf("spec.persistentVolumeClaimRetentionPolicy.whenDeleted is %s", l.tapp.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted)
	switch {
	case c.Use == claim.Taken:
		why = c.Why
	case !c.isOwned(l.tapp):
		patch = ownership.Take(l.tapp, c.UID)
	}
	i.act(Action{Op: OpUpdateClaim, Claim: c.PersistentVolumeClaim, Patch: patch, Reason: reasonRetention, Why: why})
}
