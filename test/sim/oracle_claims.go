package sim

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// judgeClaim is S3: no claim goes unless the policy says so, neither now nor later
// with the TApp.
func (o *oracle) judgeClaim(c *change) error {
	name := c.object().GetName()
	app, id := stem(strings.TrimPrefix(name, "data-"))
	seen := o.appsSeen(app, c.request.belief)
	if c.request.verb == "delete" {
		num, _ := number(id)
		if !slices.ContainsFunc(seen, func(t *tappv1.TApp) bool {
			return t.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled == tappv1.DeletePersistentVolumeClaim && num >= int(*t.Spec.Replicas)
		}) {
			return fmt.Errorf("S3: claim %s is deleted, and its policy does not say so", name)
		}
		if o.used(name, c.request.belief) {
			return fmt.Errorf("S3: claim %s is deleted while a pod mounts it", name)
		}
		return nil
	}
	after := c.after.(*corev1.PersistentVolumeClaim)
	if !ownedByTApp(after) || c.before != nil && ownedByTApp(c.before) {
		return nil
	}
	if !slices.ContainsFunc(seen, func(t *tappv1.TApp) bool {
		return t.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted == tappv1.DeletePersistentVolumeClaim
	}) {
		return fmt.Errorf("S3: claim %s is to go with the TApp, and its policy does not say so", name)
	}
	return nil
}

func ownedByTApp(o object) bool {
	return slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return isTApp(&r) })
}

// used says whether at every version that was believed in some pod mounted the claim.
func (o *oracle) used(claim string, b *belief) bool {
	for _, p := range versionsOf[*corev1.Pod](o, pods, strings.TrimPrefix(claim, "data-"), b) {
		if p == nil || !slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
		}) {
			return false
		}
	}
	return true
}
