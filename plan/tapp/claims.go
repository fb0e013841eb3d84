package tapp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// mountClaims replaces template volumes by the instance's claims of the same
// name.
func (d *decision) mountClaims(pod *corev1.Pod, i *instance) {
	if len(d.tapp.Spec.VolumeClaimTemplates) > 0 {
		pod.Spec.Volumes = slices.Clone(pod.Spec.Volumes) // which all pods of the template share
	}
	for _, c := range d.tapp.Spec.VolumeClaimTemplates {
		pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == c.Name })
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
			Name: c.Name,
			VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: d.claimName(c.Name, i)},
			},
		})
	}
}

func (d *decision) claimName(template string, i *instance) string {
	return template + "-" + d.tapp.Name + "-" + i.id
}

// createClaims creates the claims that the instance has not got. It is false
// while one of them is being deleted: a pod that mounted it would lose it.
func (d *decision) createClaims(i *instance) bool {
	for _, t := range d.tapp.Spec.VolumeClaimTemplates {
		name := d.claimName(t.Name, i)
		if c, ok := d.claims[name]; ok {
			if c.DeletionTimestamp != nil {
				i.hold("ClaimTerminating", "its claim "+name+" is being deleted, and a new one is made when it is gone")
				return false
			}
			continue
		}
		i.act(Action{Op: OpCreateClaim, Claim: d.newClaim(&t, name, i),
			Reason: "ClaimMissing", Why: "the claim of spec.volumeClaimTemplates[" + t.Name + "] does not exist"})
	}
	return true
}

func (d *decision) newClaim(t *corev1.PersistentVolumeClaim, name string, i *instance) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: *t.ObjectMeta.DeepCopy(), Spec: *t.Spec.DeepCopy()}
	c.Name, c.GenerateName, c.Namespace = name, "", d.tapp.Namespace
	if c.Labels == nil {
		c.Labels = map[string]string{}
	}
	if d.tapp.Spec.Selector != nil {
		for k, v := range d.tapp.Spec.Selector.MatchLabels {
			c.Labels[k] = v
		}
	}
	c.Labels[tappv1.LabelInstanceID] = i.id
	if d.ownsClaims() {
		c.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(d.tapp, tappv1.GroupVersionKind())}
	}
	return c
}

// ownsClaims says whether the claims go with the TApp.
func (d *decision) ownsClaims() bool {
	return d.tapp.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted == tappv1.DeletePersistentVolumeClaim
}

// claim of an instance, with the claim template that it came from.
type claim struct {
	*corev1.PersistentVolumeClaim
	template *corev1.PersistentVolumeClaim
	num      int
}

// readClaims finds the instances' claims, in a fixed order. Those of another
// controller are not the TApp's to change.
func (d *decision) readClaims() {
	d.claims = make(map[string]*corev1.PersistentVolumeClaim, len(d.in.Claims))
	for _, c := range d.in.Claims {
		d.claims[c.Name] = c
	}
	for t := range d.tapp.Spec.VolumeClaimTemplates {
		template := &d.tapp.Spec.VolumeClaimTemplates[t]
		for _, c := range d.in.Claims {
			num, ok := instanceOf(template.Name+"-"+d.tapp.Name, c.Name)
			if owner := metav1.GetControllerOfNoCopy(c); !ok || owner != nil && owner.UID != d.tapp.UID {
				continue
			}
			d.own = append(d.own, claim{c, template, num})
		}
	}
	slices.SortFunc(d.own, func(a, b claim) int { return strings.Compare(a.Name, b.Name) })
}

// withClaimsOnly makes instances of the ids that are not wanted, have no pod, and
// have claims with which something is to be done.
func (d *decision) withClaimsOnly() []*instance {
	var out []*instance
	for _, c := range d.own {
		if d.byID[c.num] != nil {
			continue
		}
		i := &instance{id: strconv.Itoa(c.num), num: c.num}
		i.leftBehind = d.isLeftBehind(i)
		if i.leftBehind || c.isOwned(d.tapp) != d.ownsClaims() {
			d.byID[i.num] = i
			out = append(out, i)
		}
	}
	return out
}

// isLeftBehind says whether the claims of an id without a pod are to go with
// whenScaled Delete. That it was scaled down just now, and not long ago under
// another policy, the stored status tells: it lists an id until its claims are
// gone.
func (d *decision) isLeftBehind(i *instance) bool {
	_, listed := d.tapp.Status.Statuses[i.id]
	return listed && d.claimsFollow()
}

// claimsFollow says whether the claims of instances that are scaled down go with them.
func (d *decision) claimsFollow() bool {
	return d.replicas >= 0 && d.tapp.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled == tappv1.DeletePersistentVolumeClaim
}

// followClaims deletes the claims of instances that a scale-down removed, has the
// TApp own those that go with it, and lets them grow with their template.
func (d *decision) followClaims() {
	d.findClaims()
	for _, c := range d.own {
		i := d.byID[c.num]
		if c.DeletionTimestamp != nil || i == nil {
			continue
		}
		if i.leftBehind {
			i.act(Action{Op: OpDeleteClaim, Claim: c.PersistentVolumeClaim, Reason: "ScaledDown",
				Why: fmt.Sprintf("spec.replicas is %d, and spec.persistentVolumeClaimRetentionPolicy.whenScaled is Delete", d.replicas)})
			continue
		}
		if c.Labels[tappv1.LabelInstanceID] != i.id || d.frozen != "" {
			continue
		}
		d.followOwner(i, c)
		if i.wanted {
			d.grow(i, c)
		}
	}
}

// findClaims gives the claims of running pods that were not observed the label by
// which they are: tkestack/tapp did not label claims.
func (d *decision) findClaims() {
	for _, i := range d.instances {
		if i.state != alive || !i.running() || i.template == nil {
			continue
		}
		for t := range d.tapp.Spec.VolumeClaimTemplates {
			template := &d.tapp.Spec.VolumeClaimTemplates[t]
			name := d.claimName(template.Name, i)
			if d.claims[name] == nil && mounts(i.pod, name) {
				i.act(Action{Op: OpCreateClaim, Claim: d.newClaim(template, name, i),
					Reason: "ClaimUnlabelled", Why: "the claim that the pod mounts lacks the label of its instance"})
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
func (d *decision) followOwner(i *instance, c claim) {
	owned := c.isOwned(d.tapp)
	if owned == d.ownsClaims() {
		return
	}
	ref, policy := map[string]any{"$patch": "delete", "uid": d.tapp.UID}, tappv1.RetainPersistentVolumeClaim
	if !owned {
		ref, policy = controllerRef(d.tapp), tappv1.DeletePersistentVolumeClaim
	}
	var p ownersPatch
	p.Metadata.UID, p.Metadata.OwnerReferences = string(c.UID), []map[string]any{ref}
	raw, _ := json.Marshal(p) // strings and booleans always marshal
	i.act(Action{Op: OpUpdateClaim, Claim: c.PersistentVolumeClaim, Patch: raw, Reason: "RetentionPolicyChanged",
		Why: fmt.Sprintf("spec.persistentVolumeClaimRetentionPolicy.whenDeleted is %s", policy)})
}

// grow brings the claim's request to its template's, and waits until the volume
// has got there. A claim without a volume cannot grow yet. One that asks for more
// than its template stays so, unless its storage says that it never will have it.
func (d *decision) grow(i *instance, c claim) {
	want, ok := c.template.Spec.Resources.Requests[corev1.ResourceStorage]
	if !ok {
		return
	}
	has := c.Spec.Resources.Requests[corev1.ResourceStorage]
	capacity, known := c.Status.Capacity[corev1.ResourceStorage]
	reason, why := "ClaimGrows", fmt.Sprintf("spec.volumeClaimTemplates[%s] requests %s, and the claim %s", c.template.Name, want.String(), has.String())
	switch less := want.Cmp(has); {
	case less > 0:
		d.growing = append(d.growing, c)
		if c.Status.Phase != corev1.ClaimBound {
			return
		}
	case !known || capacity.Cmp(want) >= 0:
		return
	default:
		d.growing = append(d.growing, c)
		if less == 0 || !c.isInfeasible() {
			return
		}
		reason, why = "ResizeInfeasible", why+", which its storage cannot provide"
	}
	patch := map[string]any{
		"metadata": map[string]any{"uid": c.UID},
		"spec":     map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": want.String()}}},
	}
	raw, _ := json.Marshal(patch) // strings always marshal
	i.act(Action{Op: OpUpdateClaim, Claim: c.PersistentVolumeClaim, Patch: raw, Reason: reason, Why: why})
}

// isInfeasible says whether the storage has told that the claim will never have
// the size that it requests. What it told of another size is no news.
func (c claim) isInfeasible() bool {
	tried, known := c.Status.AllocatedResources[corev1.ResourceStorage]
	if known && tried.Cmp(c.Spec.Resources.Requests[corev1.ResourceStorage]) != 0 {
		return false
	}
	switch c.Status.AllocatedResourceStatuses[corev1.ResourceStorage] {
	case corev1.PersistentVolumeClaimControllerResizeInfeasible, corev1.PersistentVolumeClaimNodeResizeInfeasible:
		return true
	}
	return false
}

// whyGrowing tells of the first claim that has not grown yet; infeasible is true
// when it never will by itself.
func (d *decision) whyGrowing() (why string, infeasible bool) {
	for _, c := range d.growing {
		want := c.template.Spec.Resources.Requests[corev1.ResourceStorage]
		if want.Cmp(c.Spec.Resources.Requests[corev1.ResourceStorage]) == 0 && c.isInfeasible() {
			return fmt.Sprintf("claim %s cannot grow: %s; give its template a size that the storage class can provide", c.Name, c.whyInfeasible()), true
		}
	}
	c := d.growing[0]
	for _, x := range c.Status.Conditions {
		if x.Type == corev1.PersistentVolumeClaimFileSystemResizePending && x.Status == corev1.ConditionTrue {
			return fmt.Sprintf("claim %s has grown, and its file system follows when the pod mounts it", c.Name), false
		}
	}
	if c.Status.Phase != corev1.ClaimBound {
		return fmt.Sprintf("claim %s has no volume yet, and grows when it has one", c.Name), false
	}
	capacity := c.Status.Capacity[corev1.ResourceStorage]
	want := c.template.Spec.Resources.Requests[corev1.ResourceStorage]
	return fmt.Sprintf("claim %s has %s of %s", c.Name, capacity.String(), want.String()), false
}

// whyInfeasible is what the storage says, if it gives a reason.
func (c claim) whyInfeasible() string {
	for _, x := range c.Status.Conditions {
		if (x.Type == corev1.PersistentVolumeClaimControllerResizeError || x.Type == corev1.PersistentVolumeClaimNodeResizeError) &&
			x.Status == corev1.ConditionTrue && x.Message != "" {
			return x.Message
		}
	}
	return "its storage says that the size is infeasible"
}
