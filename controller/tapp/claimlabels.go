package tapp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/ids"
	plan "tkestack.io/tapp/plan/tapp"
)

// labelClaimsTimeout is how long the search may take. It goes on beside the work.
const labelClaimsTimeout = 5 * time.Minute

// labelClaims gives the claims that TApps own the label by which they are cached.
// tkestack/tapp labelled none, and owned all: with their TApp would go what
// whenDeleted keeps, also of instances that are killed or scaled down, whose
// claims no pod mounts. They are looked for until a search has found all, and not in the
// later terms of the process. What fails is only logged: claims that a pod mounts are
// found by it.
func (c *Controller) labelClaims(ctx context.Context) {
	if c.claimsLabelled {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, labelClaimsTimeout)
	defer cancel()
	found := 0
	options := metav1.ListOptions{LabelSelector: "!" + tappv1.LabelInstanceID, Limit: listPage}
	var errs []error
	for {
		list, err := c.Core.PersistentVolumeClaims(c.Namespace).List(ctx, options)
		if err != nil {
			errs = append(errs, fmt.Errorf("list claims without the label: %w", err))
			break
		}
		for i := range list.Items {
			errs = append(errs, c.loop.Contain(func() error {
				labelled, err := c.labelClaim(ctx, &list.Items[i])
				if labelled {
					found++
				}
				return err
			}))
		}
		if options.Continue = list.Continue; options.Continue == "" {
			break
		}
	}
	if found > 0 {
		klog.FromContext(ctx).Info("Labelled the claims of an earlier version", "claims", found)
	}
	err := errors.Join(errs...)
	c.claimsLabelled = err == nil
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) {
		klog.FromContext(ctx).Error(err, "Some claims of an earlier version may lack their label")
	}
}

// labelClaim labels and marks the claim if it is an instance's of the TApp that owns it.
func (c *Controller) labelClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) (bool, error) {
	owner := metav1.GetControllerOfNoCopy(claim)
	if owner == nil || owner.Kind != tappv1.Kind || claim.DeletionTimestamp != nil {
		return false, nil
	}
	t, err := c.lister.TApps(claim.Namespace).Get(owner.Name)
	if err != nil || t.UID != owner.UID {
		return false, nil // the garbage collector's
	}
	for i := range t.Spec.VolumeClaimTemplates {
		id, ok := strings.CutPrefix(claim.Name, claimStem(t, i)+"-")
		if _, canonical := ids.Parse(id); !ok || !canonical {
			continue
		}
		us := plan.MakerOf(t, c.Policy)
		verdict := us.Judge(claim, id, nil)
		if verdict.Why != "" { // its mark has another name
			return false, nil
		}
		patch, _ := us.Take(claim, id, verdict)
		_, err := c.Core.PersistentVolumeClaims(claim.Namespace).Patch(ctx, claim.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return false, nil // it went away just now
		}
		if err != nil {
			return false, fmt.Errorf("label claim %s/%s: %w", claim.Namespace, claim.Name, err)
		}
		return true, nil
	}
	return false, nil
}
