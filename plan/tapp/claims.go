package tapp

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/growth"
)

// ReasonClaimUnlabelled is the reason for creating a claim that most likely exists, and
// that a pod of the instance mounts: it lacks the label of its instance.
const ReasonClaimUnlabelled = "ClaimUnlabelled"

const (
	reasonNameTaken        = "NameTaken"
	reasonClaimTerminating = "ClaimTerminating"
	reasonRetention        = "RetentionPolicyChanged"
)

// mountClaims replaces template volumes by the instance's claims of the same
// name.
func (s *spec) mountClaims(pod *corev1.Pod, i *instance) {
	if len(s.tapp.Spec.VolumeClaimTemplates) > 0 {
		pod.Spec.Volumes = slices.Clone(pod.Spec.Volumes) // which all pods of the template share
	}
	for _, c := range s.tapp.Spec.VolumeClaimTemplates {
		pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == c.Name })
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
			Name: c.Name,
			VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: s.claimName(c.Name, i)},
			},
		})
	}
}

func (s *spec) claimName(template string, i *instance) string {
	return template + "-" + s.tapp.Name + "-" + i.name
}

// claims are those that carry the name of one of the TApp's instances.
type claims struct {
	*spec
	// byName are all, whoever owns them; own are those of no other controller, by
	// name.
	byName map[string]*corev1.PersistentVolumeClaim
	own    []claim
}

// claim of an instance, with the claim template that it came from.
type claim struct {
	*corev1.PersistentVolumeClaim
	template *corev1.PersistentVolumeClaim
	id       int
}

// readClaims finds the instances' claims, in a fixed order. Those of another
// controller are not the TApp's to change.
func readClaims(s *spec, in []*corev1.PersistentVolumeClaim) *claims {
	l := &claims{spec: s, byName: make(map[string]*corev1.PersistentVolumeClaim, len(in))}
	for _, c := range in {
		l.byName[c.Name] = c
	}
	for t := range s.tapp.Spec.VolumeClaimTemplates {
		template := &s.tapp.Spec.VolumeClaimTemplates[t]
		for _, c := range in {
			id, ok := instanceOf(template.Name+"-"+s.tapp.Name, c.Name)
			if owner := metav1.GetControllerOfNoCopy(c); !ok || owner != nil && owner.UID != s.tapp.UID {
				continue
			}
			l.own = append(l.own, claim{c, template, id})
		}
	}
	slices.SortFunc(l.own, func(a, b claim) int { return strings.Compare(a.Name, b.Name) })
	return l
}

// createFor creates the claims that the instance has not got. It is false while one of
// them is being deleted, or goes with another controller: a pod that mounted it would
// lose it.
func (l *claims) createFor(i *instance) bool {
	for _, t := range l.tapp.Spec.VolumeClaimTemplates {
		name := l.claimName(t.Name, i)
		if c, ok := l.byName[name]; ok {
			if c.DeletionTimestamp != nil {
				i.wait(reasonClaimTerminating, "its claim "+name+" is being deleted, and a new one is made when it is gone")
				return false
			}
			if owner := metav1.GetControllerOfNoCopy(c); owner != nil && owner.UID != l.tapp.UID {
				i.wait(reasonNameTaken, fmt.Sprintf("there is a claim %s that %s %s controls (UID %s), and the instance waits until it is gone", name, owner.Kind, owner.Name, owner.UID))
				return false
			}
			continue
		}
		i.act(Action{Op: OpCreateClaim, Claim: l.newClaim(&t, name, i),
			Reason: "ClaimMissing", Why: "the claim of spec.volumeClaimTemplates[" + t.Name + "] does not exist"})
	}
	return true
}

// waitFor says whether a claim of the instance is being deleted and cannot go before its
// pod, which ended: Kubernetes keeps a claim for as long as a pod mounts it, running or
// not.
func (l *claims) waitFor(i *instance) bool {
	for _, t := range l.tapp.Spec.VolumeClaimTemplates {
		name := l.claimName(t.Name, i)
		if c := l.byName[name]; c != nil && c.DeletionTimestamp != nil && mounts(i.pod, name) {
			return true
		}
	}
	return false
}

func (s *spec) newClaim(t *corev1.PersistentVolumeClaim, name string, i *instance) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: *t.ObjectMeta.DeepCopy(), Spec: *t.Spec.DeepCopy()}
	c.Name, c.GenerateName, c.Namespace = name, "", s.tapp.Namespace
	if c.Labels == nil {
		c.Labels = map[string]string{}
	}
	if s.tapp.Spec.Selector != nil {
		for k, v := range s.tapp.Spec.Selector.MatchLabels {
			c.Labels[k] = v
		}
	}
	c.Labels[tappv1.LabelInstanceID] = i.name
	if s.ownsClaims() {
		c.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(s.tapp, tappv1.GroupVersionKind())}
	}
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
		if byID[c.id] != nil {
			continue
		}
		i := &instance{id: c.id, name: strconv.Itoa(c.id)}
		i.claimsLeft = l.areLeft(i)
		if i.claimsLeft || c.isOwned(l.tapp) != l.ownsClaims() {
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
	last, listed := s.tapp.Status.Statuses[i.name]
	killed := last == tappv1.InstanceKilled || s.tapp.Spec.Statuses[i.name] == tappv1.InstanceKilled
	return listed && !killed && s.claimsFollow()
}

// claimsFollow says whether the claims of instances that are scaled down go with them.
func (s *spec) claimsFollow() bool {
	return !s.idsInvalid && s.tapp.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled == tappv1.DeletePersistentVolumeClaim
}

// followClaims deletes the claims of instances that a scale-down removed, makes the TApp
// the owner of those that go with it, and lets them grow with their template. It returns
// those that have not grown yet.
func followClaims(s *spec, now *clock, l *claims, all []*instance) (growing []claim) {
	l.label(now, all)
	byID := make(map[int]*instance, len(l.own))
	if len(l.own) > 0 {
		for _, i := range all {
			byID[i.id] = i
		}
	}
	for _, c := range l.own {
		i := byID[c.id]
		if c.DeletionTimestamp != nil || i == nil {
			continue
		}
		if i.claimsLeft {
			i.act(Action{Op: OpDeleteClaim, Claim: c.PersistentVolumeClaim, Reason: "ScaledDown",
				Why: s.ids.Why() + ", and spec.persistentVolumeClaimRetentionPolicy.whenScaled is Delete"})
			continue
		}
		if c.Labels[tappv1.LabelInstanceID] != i.name || s.frozen != "" {
			continue
		}
		s.followOwner(i, c)
		if !i.inRange {
			continue
		}
		size := growth.Of(c.template, c.PersistentVolumeClaim)
		if size.Patch != nil {
			i.act(Action{Op: OpUpdateClaim, Claim: c.PersistentVolumeClaim, Patch: size.Patch, Reason: size.Reason, Why: size.Why})
		}
		if size.Growing {
			growing = append(growing, c)
		}
	}
	return growing
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
				s.followOwner(i, c)
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
			name := l.claimName(template.Name, i)
			if l.byName[name] == nil && mounts(i.pod, name) && l.mayCreate(c) {
				i.act(Action{Op: OpCreateClaim, Claim: l.newClaim(template, name, i),
					Reason: ReasonClaimUnlabelled, Why: "the claim that the pod mounts lacks the label of its instance"})
			}
		}
	}
}

func mounts(pod *corev1.Pod, claim string) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
	})
}

func (c claim) isOwned(t *tappv1.TApp) bool {
	return slices.ContainsFunc(c.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == t.UID })
}

// followOwner keeps the TApp among the owners of a claim exactly while the policy
// says that the claim goes with it. tkestack/tapp always was the owner.
func (s *spec) followOwner(i *instance, c claim) {
	owned := c.isOwned(s.tapp)
	if owned == s.ownsClaims() {
		return
	}
	ref, policy := noOwner(s.tapp), tappv1.RetainPersistentVolumeClaim
	if !owned {
		ref, policy = controllerRef(s.tapp), tappv1.DeletePersistentVolumeClaim
	}
	i.act(Action{Op: OpUpdateClaim, Claim: c.PersistentVolumeClaim, Patch: ownerPatch(string(c.UID), ref), Reason: reasonRetention,
		Why: fmt.Sprintf("spec.persistentVolumeClaimRetentionPolicy.whenDeleted is %s", policy)})
}

// whyGrowing tells of the claim that tells most, of those that have not grown yet;
// infeasible is true when it never will by itself.
func whyGrowing(growing []claim) (why string, infeasible bool) {
	why = growth.Progress(growing[0].template, growing[0].PersistentVolumeClaim)
	for _, c := range growing {
		if never := growth.Infeasible(c.template, c.PersistentVolumeClaim); never != "" {
			why, infeasible = never, true
			break
		}
	}
	return fmt.Sprintf("claims that are to grow: %d, %s", len(growing), why), infeasible
}
