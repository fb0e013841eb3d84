// Package client reads and writes the objects of our kinds. It is client-go's
// generic client, made for each of them; there is no generated clientset.
package client

import (
	"context"
	"errors"
	"net/http"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// Interface gives access to the TApps of a namespace, or of all namespaces by
// metav1.NamespaceAll.
type Interface interface {
	TApps(namespace string) TAppInterface
}

// TAppInterface reads and writes TApps.
type TAppInterface interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*tappv1.TApp, error)
	List(ctx context.Context, opts metav1.ListOptions) (*tappv1.TAppList, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
	Create(ctx context.Context, tapp *tappv1.TApp, opts metav1.CreateOptions) (*tappv1.TApp, error)
	Update(ctx context.Context, tapp *tappv1.TApp, opts metav1.UpdateOptions) (*tappv1.TApp, error)
	UpdateStatus(ctx context.Context, tapp *tappv1.TApp, opts metav1.UpdateOptions) (*tappv1.TApp, error)
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (*tappv1.TApp, error)
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
	GetScale(ctx context.Context, name string, opts metav1.GetOptions) (*autoscalingv1.Scale, error)
	UpdateScale(ctx context.Context, name string, scale *autoscalingv1.Scale, opts metav1.UpdateOptions) (*autoscalingv1.Scale, error)
}

// Client implements Interface.
type Client struct {
	rest   rest.Interface
	params runtime.ParameterCodec
}

var _ Interface = (*Client)(nil)

// New makes a client with an HTTP transport of its own.
func New(cfg *rest.Config) (*Client, error) {
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, err
	}
	return NewWithHTTPClient(cfg, httpClient)
}

// NewWithHTTPClient makes a client that shares its connections with others. It
// shares their rate limit too if cfg.RateLimiter is set.
func NewWithHTTPClient(cfg *rest.Config, httpClient *http.Client) (*Client, error) {
	restClient, params, err := newREST(cfg, httpClient, tappv1.SchemeGroupVersion, tappv1.AddToScheme)
	if err != nil {
		return nil, err
	}
	return &Client{rest: restClient, params: params}, nil
}

// newREST makes a client of one group, whose types addToScheme knows.
func newREST(cfg *rest.Config, httpClient *http.Client, gv schema.GroupVersion, addToScheme func(*runtime.Scheme) error) (rest.Interface, runtime.ParameterCodec, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(addToScheme(scheme), autoscalingv1.AddToScheme(scheme)); err != nil {
		return nil, nil, err
	}

	c := rest.CopyConfig(cfg)
	c.GroupVersion = &gv
	c.APIPath = "/apis"
	// The caller may have asked for protobuf, which custom resources do not speak.
	c.ContentType = runtime.ContentTypeJSON
	c.AcceptContentTypes = runtime.ContentTypeJSON
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	if c.UserAgent == "" {
		c.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	restClient, err := rest.RESTClientForConfigAndClient(c, httpClient)
	return restClient, runtime.NewParameterCodec(scheme), err
}

// TApps gives access to the TApps of a namespace.
func (c *Client) TApps(namespace string) TAppInterface {
	return &scaled[*tappv1.TApp, *tappv1.TAppList]{
		ClientWithList: gentype.NewClientWithList(tappv1.Resource().Resource, c.rest, c.params, namespace,
			func() *tappv1.TApp { return &tappv1.TApp{} },
			func() *tappv1.TAppList { return &tappv1.TAppList{} }),
		resource: tappv1.Resource().Resource, params: c.params,
	}
}

// object is what gentype's clients are made for.
type object interface {
	runtime.Object
	metav1.Object
}

// scaled is a client of one kind, with its subresource scale.
type scaled[T object, L runtime.Object] struct {
	*gentype.ClientWithList[T, L]
	resource string
	params   runtime.ParameterCodec
}

// GetScale reads the scale subresource of an object.
func (s *scaled[T, L]) GetScale(ctx context.Context, name string, opts metav1.GetOptions) (*autoscalingv1.Scale, error) {
	scale := &autoscalingv1.Scale{}
	err := s.scale(s.GetClient().Get(), name).VersionedParams(&opts, s.params).Do(ctx).Into(scale)
	return scale, err
}

// UpdateScale writes the scale subresource of an object.
func (s *scaled[T, L]) UpdateScale(ctx context.Context, name string, scale *autoscalingv1.Scale, opts metav1.UpdateOptions) (*autoscalingv1.Scale, error) {
	updated := &autoscalingv1.Scale{}
	err := s.scale(s.GetClient().Put(), name).VersionedParams(&opts, s.params).Body(scale).Do(ctx).Into(updated)
	return updated, err
}

func (s *scaled[T, L]) scale(r *rest.Request, name string) *rest.Request {
	return r.Namespace(s.GetNamespace()).Resource(s.resource).Name(name).SubResource("scale")
}
