package app

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	plan "tkestack.io/tapp/plan/app"
)

// access to the children of one kind.
type access struct {
	get    func(ctx context.Context, namespace, name string) (metav1.Object, error)
	apply  func(ctx context.Context, namespace, name string, manifest []byte, o metav1.PatchOptions) (metav1.Object, error)
	patch  func(ctx context.Context, namespace, name string, patch []byte, o metav1.PatchOptions) (metav1.Object, error)
	remove func(ctx context.Context, namespace, name string, o metav1.DeleteOptions) error
}

func (c *Controller) access(kind plan.Kind) access {
	if kind == plan.Deployment {
		return accessBy(c.Deployments.Deployments)
	}
	return accessBy(c.Services.Services)
}

// childClient is what client-go's clients of all kinds have.
type childClient[T metav1.Object] interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (T, error)
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, o metav1.PatchOptions, subresources ...string) (T, error)
	Delete(ctx context.Context, name string, o metav1.DeleteOptions) error
}

func accessBy[T metav1.Object, C childClient[T]](in func(namespace string) C) access {
	return access{
		get: func(ctx context.Context, ns, name string) (metav1.Object, error) {
			return in(ns).Get(ctx, name, metav1.GetOptions{})
		},
		apply: func(ctx context.Context, ns, name string, manifest []byte, o metav1.PatchOptions) (metav1.Object, error) {
			return in(ns).Patch(ctx, name, types.ApplyPatchType, manifest, o)
		},
		patch: func(ctx context.Context, ns, name string, patch []byte, o metav1.PatchOptions) (metav1.Object, error) {
			return in(ns).Patch(ctx, name, types.JSONPatchType, patch, o)
		},
		remove: func(ctx context.Context, ns, name string, o metav1.DeleteOptions) error {
			return in(ns).Delete(ctx, name, o)
		},
	}
}
