package sim

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/sim/apiserver"
)

// judgeClaim is S3: no claim goes unless the policy says so, neither now nor later
// with the TApp.
func (o *oracle) judgeClaim(c *change) error {
	name := c.Key()
	app, id := stem(instanceOf(name))
	seen := o.appsSeen(app, causeOf(c).belief)
	if causeOf(c).Verb == "delete" {
		num, _ := number(id)
		if !slices.ContainsFunc(seen, func(t *tappv1.TApp) bool {
			return t.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled == tappv1.DeletePersistentVolumeClaim && num >= int(*t.Spec.Replicas) && !isKilled(t, id)
		}) {
			return fmt.Errorf("S3: claim %s is deleted, and its policy does not say so", name)
		}
		if o.used(name, causeOf(c).belief) {
			return fmt.Errorf("S3: claim %s is deleted while a pod mounts it", name)
		}
		if o.w.has(classOthers) {
			return o.mayGo(name, seen, causeOf(c).belief)
		}
		return nil
	}
	if o.w.has(classOthers) {
		if err := o.touches(c, seen); err != nil {
			return err
		}
	}
	if c.Before == nil && causeOf(c).replica.isFollowed() {
		o.strays[name] = true
	}
	after := c.After.(*corev1.PersistentVolumeClaim)
	if !ownedByTApp(after) || c.Before != nil && ownedByTApp(c.Before) {
		return nil
	}
	if !slices.ContainsFunc(seen, func(t *tappv1.TApp) bool {
		return t.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted == tappv1.DeletePersistentVolumeClaim
	}) {
		return fmt.Errorf("S3: claim %s is to go with the TApp, and its policy does not say so", name)
	}
	return nil
}

// owe notes, for L1, the claims that a user leaves to the policy by scaling down: those
// of instances that the controller knows of, by their pod or by the status, and that
// were not killed by then. A user who
// changes that policy, scales up or deletes the TApp takes it back, and so does somebody
// who takes the pod: it may use the claim.
func (o *oracle) owe(c *change) {
	app := c.Key()
	before, _ := c.Before.(*tappv1.TApp)
	after, _ := c.After.(*tappv1.TApp)
	for n := range mostReplicas {
		id := strconv.Itoa(n)
		switch {
		case after == nil || after.DeletionTimestamp != nil || n < int(*after.Spec.Replicas) || !deletesScaled(after) || isKilled(after, id):
			delete(o.owed, app+"-"+id)
		case before != nil && n < int(*before.Spec.Replicas) && o.knows(before, id) && !isKilled(before, id):
			o.owed[app+"-"+id] = true
		}
	}
}

func deletesScaled(t *tappv1.TApp) bool {
	p := t.Spec.PersistentVolumeClaimRetentionPolicy
	return p != nil && p.WhenScaled == tappv1.DeletePersistentVolumeClaim
}

// isKilled says whether an instance is, or is to be, stopped by spec.statuses.
func isKilled(t *tappv1.TApp, id string) bool {
	return t.Spec.Statuses[id] == tappv1.InstanceKilled || t.Status.Statuses[id] == tappv1.InstanceKilled
}

// knows says whether the controller can know of an instance whatever it has forgotten.
func (o *oracle) knows(t *tappv1.TApp, id string) bool {
	if pod, exists := apiserver.Find[*corev1.Pod](o.w.Store, pods, keyOf(t)+"-"+id); exists {
		return controllerOf(pod) == t.UID
	}
	_, listed := t.Status.Statuses[id]
	return listed
}

// leftBehind is the end of S3: what the policy deletes is gone at rest. A claim that a
// process made while the next one led is no part of it: the next one can have looked for
// claims of the instance, and taken it off its list, before that. Nor is one that others made
// or marked.
func (o *oracle) leftBehind(t *tappv1.TApp) error {
	for n := range mostReplicas {
		instance := keyOf(t) + "-" + strconv.Itoa(n)
		if _, exists := apiserver.Find[*corev1.PersistentVolumeClaim](o.w.Store, claims, claimOf(instance)); exists && o.owed[instance] && !o.strays[claimOf(instance)] && !o.strange[claimOf(instance)] {
			return fmt.Errorf("S3: instance %d was scaled down, and its claim is there although the policy deletes it", n)
		}
	}
	return nil
}

func ownedByTApp(o object) bool {
	return slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return isTApp(&r) })
}

// used says whether at every version that was believed in some pod mounted the claim.
func (o *oracle) used(claim string, b *belief) bool {
	for _, p := range versionsOf[*corev1.Pod](o, pods, instanceOf(claim), b) {
		if p == nil || !slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && apiserver.KeyOf(p.Namespace, v.PersistentVolumeClaim.ClaimName) == claim
		}) {
			return false
		}
	}
	return true
}

// mountable says whether a new pod may mount its claims: not one that is being deleted, and
// not one that another controller owns, and goes with it.
func (o *oracle) mountable(pod *corev1.Pod, b *belief) error {
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		name := v.PersistentVolumeClaim.ClaimName
		if o.w.has(classOthers) && o.mountsOthers(pod, apiserver.KeyOf(pod.Namespace, name), b) {
			return fmt.Errorf("S7: pod %s is made, and mounts the claim %s, which is proven another's", pod.Name, name)
		}
		if !slices.ContainsFunc(versionsOf[*corev1.PersistentVolumeClaim](o, claims, apiserver.KeyOf(pod.Namespace, name), b), func(c *corev1.PersistentVolumeClaim) bool {
			return c == nil || c.DeletionTimestamp == nil && (controllerOf(c) == "" || controllerOf(c) == controllerOf(pod))
		}) {
			return fmt.Errorf("S3: pod %s is made, and mounts the claim %s, which goes", pod.Name, name)
		}
	}
	return nil
}
