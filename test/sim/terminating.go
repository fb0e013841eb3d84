package sim

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/sim/apiserver"
)

// S13: no pod is deleted by us while its claim was seen as being deleted: the claim goes with
// it, and the data with the claim. Users lost volumes so in the midst of a rollout.

// keepsClaims judges the deletion of a pod. It may go if it was seen as being deleted already,
// if the claim was not seen so, if somebody let that very claim go, or if the policy of a
// scale-down deletes it.
func (o *oracle) keepsClaims(c *change, pod *corev1.Pod, id string, seen []*tappv1.TApp) error {
	b := causeOf(c).belief
	believed := o.podsSeen(pod, b)
	if slices.ContainsFunc(believed, func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil }) || followsScale(seen, id) {
		return nil
	}
	for _, name := range claimsOf(pod) {
		versions := versionsOf[*corev1.PersistentVolumeClaim](o, claims, apiserver.KeyOf(pod.Namespace, name), b)
		if len(versions) == 0 || slices.ContainsFunc(versions, func(x *corev1.PersistentVolumeClaim) bool {
			return x == nil || x.DeletionTimestamp == nil || x.Labels[tappv1.LabelInstanceID] == "" ||
				slices.ContainsFunc(believed, func(p *corev1.Pod) bool {
					return strings.Contains(p.Annotations[tappv1.AnnotationClaimMayGo], string(x.UID))
				})
		}) {
			continue
		}
		return fmt.Errorf("S13: pod %s is deleted, and its claim %s, which is being deleted, goes with it", pod.Name, name)
	}
	return nil
}

// followsScale says whether a version of the TApp deletes the claims of the id by its policy.
func followsScale(seen []*tappv1.TApp, id string) bool {
	num, _ := number(id)
	return slices.ContainsFunc(seen, func(t *tappv1.TApp) bool {
		return deletesScaled(t) && num >= int(*t.Spec.Replicas) && !isKilled(t, id)
	})
}

// claimsOf a pod are the names of the claims that it mounts.
func claimsOf(pod *corev1.Pod) (out []string) {
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			out = append(out, v.PersistentVolumeClaim.ClaimName)
		}
	}
	return out
}

// letClaimsGo has somebody let those claims of a pod go that are being deleted.
func (w *world) letClaimsGo(pod *corev1.Pod) {
	var uids []string
	for _, name := range claimsOf(pod) {
		if c, ok := apiserver.Find[*corev1.PersistentVolumeClaim](w.Store, claims, apiserver.KeyOf(pod.Namespace, name)); ok && c.DeletionTimestamp != nil {
			uids = append(uids, string(c.UID))
		}
	}
	if len(uids) == 0 {
		return
	}
	_, _ = w.Update(pods, keyOf(pod), "", w.as("user"), func(o object) error {
		metav1.SetMetaDataAnnotation(&o.(*corev1.Pod).ObjectMeta, tappv1.AnnotationClaimMayGo, strings.Join(uids, ","))
		return nil
	})
}

// strikeTerminating lets the claims of some pod go that are being deleted.
func (w *world) strikeTerminating(f Fault) {
	if list := apiserver.All[*corev1.Pod](w.Store, pods); len(list) > 0 {
		w.letClaimsGo(list[f.A%len(list)])
	}
}
