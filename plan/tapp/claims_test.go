package tapp

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// tell makes the claim of a story.
func (c claimStory) tell(namespace string) *corev1.PersistentVolumeClaim {
	out := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: c.Name, Namespace: namespace, UID: types.UID("claim-" + c.Name)}}
	out.Labels, out.Annotations = maps.Clone(c.Labels), map[string]string{}
	if !c.Unknown {
		if out.Labels == nil {
			out.Labels = map[string]string{}
		}
		out.Labels[tappv1.LabelInstanceID] = c.Name[strings.LastIndex(c.Name, "-")+1:]
		out.Annotations[tappv1.AnnotationClaimOf] = cmp.Or(c.Mark, "TApp/web/tapp")
	}
	if c.Mark == "none" {
		delete(out.Annotations, tappv1.AnnotationClaimOf)
	}
	if c.Found {
		out.Annotations[tappv1.AnnotationClaimFound] = "true"
	}
	if c.Dying {
		out.DeletionTimestamp = new(ago(0))
	}
	if c.Owner != "" {
		out.OwnerReferences = []metav1.OwnerReference{{Kind: "TApp", Name: "web", UID: types.UID(c.Owner), Controller: new(true)}}
	}
	if !c.Unbound {
		out.Status.Phase = corev1.ClaimBound
	}
	request := cmp.Or(c.Request, "1Gi")
	out.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(request)}
	out.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(cmp.Or(c.Capacity, request))}
	if c.Resize != "" {
		out.Status.AllocatedResources = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(cmp.Or(c.Tried, request))}
		out.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{corev1.ResourceStorage: corev1.ClaimResourceStatus(c.Resize)}
	}
	if c.Problem != "" {
		out.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{
			Type: corev1.PersistentVolumeClaimControllerResizeError, Status: corev1.ConditionTrue, Message: c.Problem,
		}}
	}
	return out
}

func drawRetention(t *rapid.T) *tappv1.PersistentVolumeClaimRetentionPolicy {
	return pick(t, "retention", nil,
		&tappv1.PersistentVolumeClaimRetentionPolicy{WhenDeleted: tappv1.DeletePersistentVolumeClaim},
		&tappv1.PersistentVolumeClaimRetentionPolicy{WhenScaled: tappv1.DeletePersistentVolumeClaim})
}

// provision is the storage: it binds claims and lets them grow, one step at a
// time.
func (c *cluster) provision() (moved bool) {
	for _, name := range slices.Sorted(maps.Keys(c.claims)) {
		s, want := &c.claims[name].Status, c.claims[name].Spec.Resources.Requests[corev1.ResourceStorage]
		has := s.Capacity[corev1.ResourceStorage]
		switch {
		case s.Phase != corev1.ClaimBound:
			s.Phase, s.Capacity = corev1.ClaimBound, corev1.ResourceList{corev1.ResourceStorage: want}
		case has.Cmp(want) < 0:
			s.Capacity = corev1.ResourceList{corev1.ResourceStorage: want}
		default:
			continue
		}
		moved = true
	}
	return moved
}

// assertClaims: every instance has its claim, of the size of its template, and
// the TApp owns claims exactly when the policy says so.
func (c *cluster) assertClaims() {
	c.t.Helper()
	spec := &defaulted(c.tapp).Spec
	policy := spec.PersistentVolumeClaimRetentionPolicy
	for _, template := range spec.VolumeClaimTemplates {
		want := template.Spec.Resources.Requests[corev1.ResourceStorage]
		for id, status := range c.tapp.Status.Statuses {
			num, _ := strconv.Atoi(id)
			has := c.claims["data-web-"+id]
			if has == nil && status != tappv1.InstanceKilled && !isEnd(status) {
				c.t.Fatalf("instance %s has no claim", id)
			}
			if has == nil || !asksFor(spec, num) {
				continue
			}
			if size := has.Status.Capacity[corev1.ResourceStorage]; size.Cmp(want) < 0 {
				c.t.Fatalf("claim %s has %s of %s", has.Name, size.String(), want.String())
			}
		}
		for name, has := range c.claims {
			if owned := len(has.OwnerReferences) > 0; owned != (policy.WhenDeleted == tappv1.DeletePersistentVolumeClaim) {
				c.t.Fatalf("claim %s is owned: %t, and the policy is %+v", name, owned, policy)
			}
		}
	}
}
