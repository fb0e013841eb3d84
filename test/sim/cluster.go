package sim

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"tkestack.io/tapp/test/sim/apiserver"
)

// The rest of a cluster: its scheduler, its garbage collectors, and its watch over
// nodes. Each does one thing a step.

// nodeNames of the cluster.
func nodeNames() []string { return []string{"n1", "n2", "n3"} }

// evictAfter is how long a pod stays on a node that does not answer.
const evictAfter = 5 * time.Minute

// errand is something that a part of the cluster has to do.
type errand struct {
	about string
	do    func()
}

// errands of the cluster, by what they are about.
func (k *kubelets) errands() []errand {
	var out []errand
	for _, pod := range apiserver.All[*corev1.Pod](k.Store, pods) {
		if e := k.podErrand(pod); e != nil {
			out = append(out, errand{"pod " + keyOf(pod), e})
		}
		if e := k.ownerErrand(pods, pod); e != nil {
			out = append(out, errand{"gc " + keyOf(pod), e})
		}
	}
	for _, claim := range apiserver.All[*corev1.PersistentVolumeClaim](k.Store, claims) {
		if e := k.claimErrand(claim); e != nil {
			out = append(out, errand{"claim " + keyOf(claim), e})
		}
		if e := k.ownerErrand(claims, claim); e != nil {
			out = append(out, errand{"gc " + keyOf(claim), e})
		}
	}
	for _, name := range k.Tables[revisions].Keys() {
		if e := k.ownerErrand(revisions, k.Tables[revisions].Objects[name]); e != nil {
			out = append(out, errand{"gc " + name, e})
		}
	}
	for _, name := range k.Tables[tapps].Keys() {
		if e := k.finalizerErrand(k.Tables[tapps].Objects[name]); e != nil {
			out = append(out, errand{"gc " + name, e})
		}
	}
	return out
}

func (k *kubelets) as(name string) apiserver.Actor { return apiserver.Actor{By: name, At: k.Now()} }

// podErrand is what the scheduler, or who watches over nodes, does about a pod.
func (k *kubelets) podErrand(pod *corev1.Pod) func() {
	node := k.Get(nodes, pod.Spec.NodeName)
	switch {
	case pod.Spec.NodeName == "":
		if to := k.nodeFor(pod); to != "" && pod.DeletionTimestamp == nil && !isFinished(pod) {
			return func() { k.bind(pod, to) }
		}
	case node == nil:
		return func() { k.collectPod(pod) }
	case isDisrupted(pod) && pod.DeletionTimestamp == nil && !isFinished(pod):
		return func() {
			_, _ = k.Remove(pods, keyOf(pod), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}}, k.as("eviction"))
		}
	case isNodeReady(node.(*corev1.Node)):
	case isReady(pod):
		return func() {
			k.write(keyOf(pod), pod.UID, "nodes", func(p *corev1.Pod) { setReady(p, false, k.Second()) })
		}
	case pod.DeletionTimestamp == nil && !isFinished(pod) && k.Now().Sub(notReadySince(node.(*corev1.Node))) >= evictAfter:
		return func() {
			_, _ = k.Remove(pods, keyOf(pod), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}}, k.as("eviction"))
		}
	}
	return nil
}

func (k *kubelets) nodeFor(pod *corev1.Pod) string {
	names := nodeNames()
	if isPinned(pod) {
		names = pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values
	}
	_, id := stem(pod.Name)
	start := 0
	if id != "" {
		start = int(id[len(id)-1])
	}
	for i := range names {
		name := names[(start+i)%len(names)]
		if node, ok := apiserver.Find[*corev1.Node](k.Store, nodes, name); ok && isNodeReady(node) {
			return name
		}
	}
	return ""
}

// isPinned says whether a pod may run on one node alone.
func isPinned(pod *corev1.Pod) bool {
	a := pod.Spec.Affinity
	return a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil
}

func (k *kubelets) bind(pod *corev1.Pod, node string) {
	_, _ = k.Update(pods, keyOf(pod), "binding", k.as("scheduler"), func(o object) error {
		o.(*corev1.Pod).Spec.NodeName = node
		return nil
	})
}

// collectPod is the garbage collection of pods whose node is gone: it calls them
// failed first.
func (k *kubelets) collectPod(pod *corev1.Pod) {
	if !isFinished(pod) {
		k.write(keyOf(pod), pod.UID, "podgc", func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodFailed
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
				Reason: "DeletionByPodGC", LastTransitionTime: k.Second()})
		})
		return
	}
	_, _ = k.Remove(pods, keyOf(pod), metav1.DeleteOptions{GracePeriodSeconds: new(int64), Preconditions: &metav1.Preconditions{UID: &pod.UID}}, k.as("podgc"))
}

// claimErrand binds a claim to a volume, lets it grow, and lets go of one that no pod
// mounts.
func (k *kubelets) claimErrand(claim *corev1.PersistentVolumeClaim) func() {
	used := slices.ContainsFunc(apiserver.All[*corev1.Pod](k.Store, pods), func(pod *corev1.Pod) bool {
		return (!isFinished(pod) || k.has(classKept) && !isShutDown(pod)) && slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && pod.Namespace == claim.Namespace && v.PersistentVolumeClaim.ClaimName == claim.Name
		})
	})
	asked, has := claim.Spec.Resources.Requests[corev1.ResourceStorage], claim.Status.Capacity[corev1.ResourceStorage]
	switch {
	case claim.DeletionTimestamp != nil:
		if slices.Contains(claim.Finalizers, apiserver.ProtectClaim) && !used {
			return func() { k.dropFinalizer(claims, claim, apiserver.ProtectClaim) }
		}
	case claim.Status.Phase != corev1.ClaimBound || asked.Cmp(has) > 0:
		return func() {
			_, _ = k.Update(claims, keyOf(claim), "status", k.as("storage"), func(o object) error {
				c := o.(*corev1.PersistentVolumeClaim)
				c.Status.Phase, c.Status.Capacity = corev1.ClaimBound, corev1.ResourceList{corev1.ResourceStorage: asked}
				return nil
			})
		}
	}
	return nil
}

// isShutDown says whether the kubelet of a deleted pod is done with it.
func isShutDown(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil && ptr.Deref(pod.DeletionGracePeriodSeconds, 1) == 0
}

func (k *kubelets) dropFinalizer(resource string, o object, finalizer string) {
	_, _ = k.Update(resource, keyOf(o), "", k.as("gc"), func(o object) error {
		o.SetFinalizers(slices.DeleteFunc(o.GetFinalizers(), func(f string) bool { return f == finalizer }))
		return nil
	})
}

// isAlive says whether an owner exists. Owners that are no TApps are those of foreign
// controllers, and exist.
func (k *kubelets) owner(namespace string, ref metav1.OwnerReference) (object, bool) {
	if !isTApp(&ref) {
		return nil, true
	}
	o := k.Get(tapps, apiserver.KeyOf(namespace, ref.Name))
	if o == nil || o.GetUID() != ref.UID {
		return nil, false
	}
	return o, true
}

// ownerErrand deletes what has lost all owners, drops owners that are gone beside
// others, and deletes what an owner waits for that is deleted in the foreground.
func (k *kubelets) ownerErrand(resource string, o object) func() {
	refs := o.GetOwnerReferences()
	if k.idle || len(refs) == 0 || o.GetDeletionTimestamp() != nil {
		return nil
	}
	var gone []types.UID
	waited := false
	for _, ref := range refs {
		owner, exists := k.owner(o.GetNamespace(), ref)
		switch {
		case !exists:
			gone = append(gone, ref.UID)
		case owner != nil && owner.GetDeletionTimestamp() != nil && slices.Contains(owner.GetFinalizers(), apiserver.Foreground):
			waited = true
		}
	}
	uid := o.GetUID()
	switch {
	case len(gone) == len(refs), waited && len(refs) == 1+len(gone):
		return func() {
			_, _ = k.Remove(resource, keyOf(o), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: ptr.To(o.GetResourceVersion())}}, k.as("gc"))
		}
	case len(gone) > 0:
		return func() { k.disown(resource, keyOf(o), gone...) }
	}
	return nil
}

func (k *kubelets) disown(resource, key string, owners ...types.UID) {
	_, _ = k.Update(resource, key, "", k.as("gc"), func(o object) error {
		o.SetOwnerReferences(slices.DeleteFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return slices.Contains(owners, r.UID) }))
		return nil
	})
}

// finalizerErrand ends a deletion in the apiserver.Foreground, or one that orphans.
func (k *kubelets) finalizerErrand(o object) func() {
	if o.GetDeletionTimestamp() == nil {
		return nil
	}
	for _, finalizer := range o.GetFinalizers() {
		blocked := false
		for _, resource := range []string{claims, revisions, pods} {
			for _, name := range k.Tables[resource].Keys() {
				d := k.Tables[resource].Objects[name]
				i := slices.IndexFunc(d.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == o.GetUID() })
				if i < 0 {
					continue
				}
				if finalizer == apiserver.Orphan {
					return func() { k.disown(resource, name, o.GetUID()) }
				}
				blocked = blocked || ptr.Deref(d.GetOwnerReferences()[i].BlockOwnerDeletion, false)
			}
		}
		if !blocked && (finalizer == apiserver.Orphan || finalizer == apiserver.Foreground) {
			return func() { k.dropFinalizer(tapps, o, finalizer) }
		}
	}
	return nil
}

func isNodeReady(n *corev1.Node) bool { return notReadySince(n).IsZero() }

func notReadySince(n *corev1.Node) time.Time {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}
