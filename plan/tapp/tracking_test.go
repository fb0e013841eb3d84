package tapp

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

const argoSyncOptions = "argocd.argoproj.io/sync-options"

// trackedTApp has two instances with a claim each, and a label of an Application.
func trackedTApp() *tappv1.TApp {
	t := spreadTApp()
	t.Spec.Template.Labels[tappv1.DefaultTrackingLabel] = "shop"
	t.Spec.Selector.MatchLabels[tappv1.DefaultTrackingLabel] = "shop"
	t.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	return t
}

func tracking() Policy { return Policy{Tracking: tappv1.DefaultTrackingLabel} }

// TestClaimsAreNoStrays: each claim has the annotations from the write that makes or marks it, or by
// one more, and none where the TApp owns them.
func TestClaimsAreNoStrays(t *testing.T) {
	claimOf := func(id int, edits ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
		name := fmt.Sprintf("data-web-%d", id)
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), ResourceVersion: "7",
			Labels:      map[string]string{"app": "web", tappv1.DefaultTrackingLabel: "shop", tappv1.LabelInstanceID: fmt.Sprint(id)},
			Annotations: map[string]string{tappv1.AnnotationClaimOf: "TApp/web/tapp"}}}
		for _, edit := range edits {
			edit(c)
		}
		return c
	}
	unmarked := func(c *corev1.PersistentVolumeClaim) { delete(c.Annotations, tappv1.AnnotationClaimOf) }
	found := func(c *corev1.PersistentVolumeClaim) { c.Annotations[tappv1.AnnotationClaimFound] = "true" }
	annotated := func(c *corev1.PersistentVolumeClaim) {
		c.Annotations[argoSyncOptions], c.Annotations["argocd.argoproj.io/compare-options"] = "Prune=false,Delete=false", "IgnoreExtraneous"
	}
	owned := func(c *corev1.PersistentVolumeClaim) {
		c.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(trackedTApp(), tappv1.GroupVersionKind())}
	}
	goes := func(t *tappv1.TApp) {
		t.Spec.PersistentVolumeClaimRetentionPolicy = &tappv1.PersistentVolumeClaimRetentionPolicy{WhenDeleted: tappv1.DeletePersistentVolumeClaim}
	}
	for name, c := range map[string]struct {
		tapp   func(*tappv1.TApp)
		policy Policy
		claims []*corev1.PersistentVolumeClaim
		want   string // operations on claims with their reasons; "+": the annotations are in it
	}{
		"made":                              {policy: tracking(), want: "CreateClaim 0 ClaimMissing+ CreateClaim 1 ClaimMissing+"},
		"made, and nobody tracks":           {want: "CreateClaim 0 ClaimMissing CreateClaim 1 ClaimMissing"},
		"made, and the TApp's":              {policy: tracking(), tapp: goes, want: "CreateClaim 0 ClaimMissing CreateClaim 1 ClaimMissing"},
		"marked long ago":                   {policy: tracking(), claims: []*corev1.PersistentVolumeClaim{claimOf(0), claimOf(1)}, want: "UpdateClaim 0 ClaimTracked+ UpdateClaim 1 ClaimTracked+"},
		"unmarked":                          {policy: tracking(), claims: []*corev1.PersistentVolumeClaim{claimOf(0, unmarked), claimOf(1)}, want: "UpdateClaim 0 ClaimUnmarked+ UpdateClaim 1 ClaimTracked+"},
		"done":                              {policy: tracking(), claims: []*corev1.PersistentVolumeClaim{claimOf(0, annotated), claimOf(1, annotated)}},
		"of an instance that is scaled off": {policy: tracking(), claims: []*corev1.PersistentVolumeClaim{claimOf(0, annotated), claimOf(1, annotated), claimOf(5), claimOf(6, unmarked), claimOf(7, annotated)}, want: "UpdateClaim 5 ClaimTracked+ UpdateClaim 6 ClaimTracked+"},
		"of a killed instance":              {policy: tracking(), tapp: func(t *tappv1.TApp) { t.Spec.Statuses = map[string]tappv1.InstanceStatus{"1": tappv1.InstanceKilled} }, claims: []*corev1.PersistentVolumeClaim{claimOf(0, annotated), claimOf(1)}, want: "UpdateClaim 1 ClaimTracked+"},
		"made by hand":                      {policy: tracking(), claims: []*corev1.PersistentVolumeClaim{claimOf(0, annotated), claimOf(1, found)}},
		"it owns them":                      {policy: tracking(), tapp: goes, claims: []*corev1.PersistentVolumeClaim{claimOf(0, owned), claimOf(1, owned)}},
		"it is to own them":                 {policy: tracking(), tapp: goes, claims: []*corev1.PersistentVolumeClaim{claimOf(0, owned), claimOf(1)}, want: "UpdateClaim 1 RetentionPolicyChanged"},
		"it owned them":                     {policy: tracking(), claims: []*corev1.PersistentVolumeClaim{claimOf(0, annotated), claimOf(1, owned)}, want: "UpdateClaim 1 RetentionPolicyChanged"},
		"nobody tracks":                     {claims: []*corev1.PersistentVolumeClaim{claimOf(0), claimOf(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			tapp := trackedTApp()
			if c.tapp != nil {
				c.tapp(tapp)
			}
			var got []string
			for _, a := range Compute(Input{TApp: tapp, Claims: c.claims, Policy: c.policy}).Actions {
				if a.Claim == nil {
					continue
				}
				text := fmt.Sprintf("%s %s %s", a.Op, a.ID, a.Reason)
				if a.Op == OpCreateClaim && a.Claim.Annotations[argoSyncOptions] == "Prune=false,Delete=false" || strings.Contains(string(a.Patch), `"`+argoSyncOptions+`":"Prune=false,Delete=false"`) {
					text += "+"
				}
				got = append(got, text)
			}
			if text := strings.Join(got, " "); text != c.want {
				t.Errorf("got  %s\nwant %s", text, c.want)
			}
		})
	}
}
