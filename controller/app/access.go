package app

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/controller/app/plan"
)

// access to the children of one kind.
type access struct {
	get    func(ctx context.Context, namespace, name string) (metav1.Object, error)
	apply  func(ctx context.Context, namespace, name string, manifest []byte, o metav1.PatchOptions) (metav1.Object, error)
	remove func(ctx context.Context, namespace, name string, o metav1.DeleteOptions) error
}

func (c *Controller) access(kind plan.Kind) access {
	if kind == plan.Deployment {
		return access{
			get: func(ctx context.Context, ns, name string) (metav1.Object, error) {
				return c.Deployments.Deployments(ns).Get(ctx, name, metav1.GetOptions{})
			},
			apply: func(ctx context.Context, ns, name string, manifest []byte, o metav1.PatchOptions) (metav1.Object, error) {
				return c.Deployments.Deployments(ns).Patch(ctx, name, types.ApplyPatchType, manifest, o)
			},
			remove: func(ctx context.Context, ns, name string, o metav1.DeleteOptions) error {
				return c.Deployments.Deployments(ns).Delete(ctx, name, o)
			},
		}
	}
	return access{
		get: func(ctx context.Context, ns, name string) (metav1.Object, error) {
			return c.Services.Services(ns).Get(ctx, name, metav1.GetOptions{})
		},
		apply: func(ctx context.Context, ns, name string, manifest []byte, o metav1.PatchOptions) (metav1.Object, error) {
			return c.Services.Services(ns).Patch(ctx, name, types.ApplyPatchType, manifest, o)
		},
		remove: func(ctx context.Context, ns, name string, o metav1.DeleteOptions) error {
			return c.Services.Services(ns).Delete(ctx, name, o)
		},
	}
}
