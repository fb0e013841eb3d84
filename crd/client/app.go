package client

import (
	"context"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	appv1 "tkestack.io/tapp/crd/app/v1"
)

// AppsGetter gives access to the Apps of a namespace, or of all namespaces by
// metav1.NamespaceAll.
type AppsGetter interface {
	Apps(namespace string) AppInterface
}

// AppInterface reads and writes Apps.
type AppInterface interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*appv1.App, error)
	List(ctx context.Context, opts metav1.ListOptions) (*appv1.AppList, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
	Create(ctx context.Context, app *appv1.App, opts metav1.CreateOptions) (*appv1.App, error)
	Update(ctx context.Context, app *appv1.App, opts metav1.UpdateOptions) (*appv1.App, error)
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (*appv1.App, error)
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
	GetScale(ctx context.Context, name string, opts metav1.GetOptions) (*autoscalingv1.Scale, error)
	UpdateScale(ctx context.Context, name string, scale *autoscalingv1.Scale, opts metav1.UpdateOptions) (*autoscalingv1.Scale, error)
}

// AppClient implements AppsGetter.
type AppClient struct {
	rest   rest.Interface
	params runtime.ParameterCodec
}

var _ AppsGetter = (*AppClient)(nil)

// NewApps makes a client of Apps with an HTTP transport of its own. It shares a
// rate limit with others if cfg.RateLimiter is set.
func NewApps(cfg *rest.Config) (*AppClient, error) {
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, err
	}
	restClient, params, err := newREST(cfg, httpClient, appv1.SchemeGroupVersion, appv1.AddToScheme)
	if err != nil {
		return nil, err
	}
	return &AppClient{rest: restClient, params: params}, nil
}

// Apps gives access to the Apps of a namespace.
func (c *AppClient) Apps(namespace string) AppInterface {
	return &scaled[*appv1.App, *appv1.AppList]{
		ClientWithList: gentype.NewClientWithList(appv1.Resource().Resource, c.rest, c.params, namespace,
			func() *appv1.App { return &appv1.App{} },
			func() *appv1.AppList { return &appv1.AppList{} }),
		resource: appv1.Resource().Resource, params: c.params,
	}
}

// AppInformer is a shared informer of Apps whose handlers and indexers are typed.
type AppInformer = cache.TypedSharedIndexInformer[*appv1.App]

// NewAppInformer is NewInformer for Apps.
func NewAppInformer(c AppsGetter, namespace string, transform cache.TransformFunc) (AppInformer, error) {
	return newInformer(source[*appv1.App]{client: c, resource: appv1.Resource().GroupResource(), example: &appv1.App{}, transform: transform,
		lists: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			return c.Apps(namespace).List(ctx, opts)
		},
		watches: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			return c.Apps(namespace).Watch(ctx, opts)
		},
	})
}
