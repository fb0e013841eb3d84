package migrate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/claim"
	"tkestack.io/tapp/plan/ids"
	"tkestack.io/tapp/plan/view"
	"tkestack.io/tapp/plugin/timeout"
)

// unlabelled returns the pods and claims without the label of their instance, by which
// the TApp finds them. Claims of ids that the set has no more are among them, and those that
// Argo CD would take for strays once the set is gone.
func (v *migration) unlabelled(ctx context.Context) (pods []*corev1.Pod, claims []*corev1.PersistentVolumeClaim, err error) {
	all, err := v.pods(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, pod := range all {
		if pod.Labels[tappv1.LabelInstanceID] != strings.TrimPrefix(pod.Name, v.set.Name+"-") {
			pods = append(pods, pod)
		}
	}
	if len(v.set.Spec.VolumeClaimTemplates) == 0 {
		return pods, nil, nil
	}
	list, err := v.s.Core.PersistentVolumeClaims(v.s.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("listing claims: %w", err)
	}
	for i := range list.Items {
		c := &list.Items[i]
		if id := v.instanceOfClaim(c.Name); id != "" && (c.Labels[tappv1.LabelInstanceID] != id || v.spares(ctx, c) != nil) {
			claims = append(claims, c)
		}
	}
	return pods, claims, nil
}

// instanceOfClaim returns the id in the name of a claim; "" if the claim is not the
// StatefulSet's.
func (v *migration) instanceOfClaim(name string) string {
	for i := range v.set.Spec.VolumeClaimTemplates {
		stem := v.set.Spec.VolumeClaimTemplates[i].Name + "-" + v.set.Name
		if view.HasInstanceName(stem, name) {
			return strings.TrimPrefix(name, stem+"-")
		}
	}
	return ""
}

// label gives pods and claims the label of their instance. The StatefulSet does not look
// at it.
func (v *migration) label(ctx context.Context) error {
	pods, claims, err := v.unlabelled(ctx)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		if _, err := v.s.Core.Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, labelling(pod, strings.TrimPrefix(pod.Name, v.set.Name+"-")), v.patching()); err != nil {
			return err
		}
	}
	for _, c := range claims {
		patch := v.takingOver(ctx, c)
		if _, err := v.s.Core.PersistentVolumeClaims(c.Namespace).Patch(ctx, c.Name, types.MergePatchType, patch, v.patching()); err != nil {
			return err
		}
	}
	v.say(2, "labelled %s and %s%s", count(len(pods), "pod"), count(len(claims), "claim"), v.tellSpared(ctx, "annotated", claims))
	return nil
}

// spares are the annotations by which Argo CD leaves a claim alone that is to lose its
// StatefulSet; nil: it has them, or needs none.
func (v *migration) spares(ctx context.Context, c *corev1.PersistentVolumeClaim) map[string]string {
	if p := v.set.Spec.PersistentVolumeClaimRetentionPolicy; p != nil && p.WhenDeleted == appsv1.DeletePersistentVolumeClaimRetentionPolicyType {
		return nil // the TApp is its owner then
	}
	bare := *c
	bare.OwnerReferences = nil
	w := claim.OfStatefulSet(v.set)
	w.Tracking = v.s.Tracking(ctx, v.tapp)
	return w.Spare(&bare, claim.Verdict{Use: claim.Ours})
}

// tellSpared says how many claims Argo CD is told to leave.
func (v *migration) tellSpared(ctx context.Context, done string, claims []*corev1.PersistentVolumeClaim) string {
	n := 0
	for _, c := range claims {
		if v.spares(ctx, c) != nil {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", and %s %s for Argo CD, which would prune what a StatefulSet leaves", done, count(n, "claim"))
}

// takingOver is the patch of a claim before its StatefulSet goes.
func (v *migration) takingOver(ctx context.Context, c *corev1.PersistentVolumeClaim) []byte {
	m := map[string]any{"uid": c.UID, "labels": map[string]string{tappv1.LabelInstanceID: v.instanceOfClaim(c.Name)}}
	if spare := v.spares(ctx, c); spare != nil {
		m["annotations"], m["resourceVersion"] = spare, c.ResourceVersion
	}
	patch, _ := json.Marshal(map[string]any{"metadata": m}) // strings always marshal
	return patch
}

func labelling(object metav1.Object, id string) []byte {
	return fmt.Appendf(nil, `{"metadata":{"uid":%q,"labels":{%q:%q}}}`, object.GetUID(), tappv1.LabelInstanceID, id)
}

// create creates the TApp, paused, and waits until the controller has observed it. Until
// then the StatefulSet manages the pods.
func (v *migration) create(ctx context.Context) error {
	word := "is there already"
	if !v.made {
		t, err := v.s.TApps.TApps(v.s.Namespace).Create(ctx, v.tapp, metav1.CreateOptions{FieldManager: *v.flags.Manager})
		if err != nil {
			return err
		}
		v.tapp, v.made, word = t, true, "made, paused"
	}
	if err := v.waitUntil(ctx, "TApp "+v.tapp.Name+" is made, and no controller of TApps has seen it: does one run? The StatefulSet still has its pods",
		func(o *View) (bool, error) { return !o.Unobserved, nil }); err != nil {
		return err
	}
	v.say(3, "TApp %s %s", v.tapp.Name, word)
	return nil
}

// waitUntil watches the TApp until done says so, at most for the timeout.
func (v *migration) waitUntil(ctx context.Context, late string, done func(*View) (bool, error)) error {
	ctx, cancel := timeout.Context(ctx, v.timeout)
	defer cancel()
	err := v.s.Follow(ctx, v.tapp, done)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the time is up after %s: %s", v.timeout, late)
	}
	return err
}

// orphanPoll is how often to ask whether the StatefulSet is gone.
const orphanPoll = 200 * time.Millisecond

// orphan deletes the StatefulSet without its pods, and waits until it is gone. It stays
// until the garbage collector has removed it from the owners of pods and claims.
func (v *migration) orphan(ctx context.Context) error {
	if v.gone {
		v.say(4, "StatefulSet %s is gone already", v.set.Name)
		return nil
	}
	sets := v.s.Apps.StatefulSets(v.s.Namespace)
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		set, err := sets.Get(ctx, v.set.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := v.unchanged(set); err != nil || set.DeletionTimestamp != nil {
			return err
		}
		orphan := metav1.DeletePropagationOrphan
		return sets.Delete(ctx, set.Name, metav1.DeleteOptions{PropagationPolicy: &orphan,
			Preconditions: &metav1.Preconditions{UID: &v.set.UID, ResourceVersion: &set.ResourceVersion}})
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	ctx, cancel := timeout.Context(ctx, v.timeout)
	defer cancel()
	err = wait.PollUntilContextCancel(ctx, orphanPoll, true, func(ctx context.Context) (bool, error) {
		set, err := sets.Get(ctx, v.set.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return err == nil && set.UID != v.set.UID, err
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the time is up after %s: the garbage collector has not let go of the pods of StatefulSet %s", v.timeout, v.set.Name)
	}
	if err != nil {
		return err
	}
	v.say(4, "StatefulSet %s deleted, without its pods", v.set.Name)
	return nil
}

// adopt waits until the TApp controls the pods, ends its pause, and compares the pods with
// what they were before.
func (v *migration) adopt(ctx context.Context) error {
	err := v.waitUntil(ctx, "TApp "+v.tapp.Name+" has not adopted all pods", func(o *View) (bool, error) {
		if left := notAdopted(o); len(left) > 0 {
			// The StatefulSet may have created a pod and its claims meanwhile, without labels.
			return false, v.labelAgain(ctx)
		}
		if would := o.Disruptive; len(would) > 0 && !v.force {
			return false, fmt.Errorf("TApp %s stays paused, since pods would restart: %s", v.tapp.Name, strings.Join(would, "; "))
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	resume := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"paused":null}}`, v.tapp.UID)
	if _, err := v.s.TApps.TApps(v.s.Namespace).Patch(ctx, v.tapp.Name, types.MergePatchType, resume, v.patching()); err != nil {
		return err
	}
	var pods []*corev1.Pod
	err = v.waitUntil(ctx, "TApp "+v.tapp.Name+" is not ready; kubectl tapp status "+v.tapp.Name+" tells why", func(o *View) (bool, error) {
		pods = o.Pods
		if o.TApp.Spec.Paused {
			return false, nil // a watch that is behind
		}
		return o.Outcome()
	})
	if err != nil {
		return err
	}
	changed := v.changedPods(pods)
	switch {
	case len(changed) > 0 && v.force:
		v.say(5, "TApp %s is ready; not all pods are as they were: %s", v.tapp.Name, strings.Join(changed, "; "))
	case len(changed) > 0:
		return fmt.Errorf("TApp %s is ready, but not all pods are as they were: %s", v.tapp.Name, strings.Join(changed, "; "))
	default:
		v.say(5, "TApp %s is ready, with the same %s; none restarted", v.tapp.Name, count(len(v.before), "pod"))
	}
	v.goBack()
	return nil
}

func (v *migration) labelAgain(ctx context.Context) error {
	pods, claims, err := v.unlabelled(ctx)
	if err != nil {
		return err
	}
	for _, c := range claims {
		_, err := v.s.Core.PersistentVolumeClaims(c.Namespace).Patch(ctx, c.Name, types.MergePatchType, v.takingOver(ctx, c), v.patching())
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	for _, pod := range pods {
		_, err := v.s.Core.Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, labelling(pod, strings.TrimPrefix(pod.Name, v.set.Name+"-")), v.patching())
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}

// notAdopted returns the names of pods that the TApp does not control.
func notAdopted(o *View) []string {
	own := map[string]bool{}
	for _, pod := range o.Pods {
		own[pod.Name] = metav1.IsControlledBy(pod, o.TApp)
	}
	var out []string
	for _, id := range ids.Of(&o.TApp.Spec).All() {
		if name := o.TApp.Name + "-" + strconv.Itoa(id); !own[name] {
			out = append(out, name)
		}
	}
	return out
}
