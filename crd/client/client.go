// Package client reads and writes the objects of our kinds. It is client-go's
// generic client, made for each of them; there is no generated clientset.
package client

import (
	"context"
	"errors"
	"sync"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// Objects reads and writes the objects of a kind in a namespace, or in all
// namespaces by metav1.NamespaceAll.
type Objects[T object, L runtime.Object] interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error)
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
	Create(ctx context.Context, o T, opts metav1.CreateOptions) (T, error)
	Update(ctx context.Context, o T, opts metav1.UpdateOptions) (T, error)
	UpdateStatus(ctx context.Context, o T, opts metav1.UpdateOptions) (T, error)
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (T, error)
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
	GetScale(ctx context.Context, name string, opts metav1.GetOptions) (*autoscalingv1.Scale, error)
	UpdateScale(ctx context.Context, name string, scale *autoscalingv1.Scale, opts metav1.UpdateOptions) (*autoscalingv1.Scale, error)
}

// object is what client-go's generic clients and informers are made for.
type object interface {
	cache.Object
	runtime.Object
	metav1.Object
}

// kind is what a client has to know of a kind.
type kind[T object, L runtime.Object] struct {
	resource  schema.GroupVersionResource
	codecs    func() (*codecs, error)
	newObject func() T
	newList   func() L
}

// codecs of a group, which all connections share: there are two for each cluster of a fleet.
type codecs struct {
	scheme  *runtime.Scheme
	objects runtime.NegotiatedSerializer
	params  runtime.ParameterCodec
}

// codecsOf makes them when they are first asked for.
func codecsOf(addToScheme func(*runtime.Scheme) error) func() (*codecs, error) {
	return sync.OnceValues(func() (*codecs, error) {
		scheme := runtime.NewScheme()
		if err := errors.Join(addToScheme(scheme), autoscalingv1.AddToScheme(scheme)); err != nil {
			return nil, err
		}
		return &codecs{scheme, serializer.NewCodecFactory(scheme).WithoutConversion(), runtime.NewParameterCodec(scheme)}, nil
	})
}

// workload has the kinds of a fleet.
var workload = codecsOf(v1beta1.AddToScheme) //nolint:gochecknoglobals // it never changes

// connection to an API server, for the objects of one kind.
type connection[T object, L runtime.Object] struct {
	kind[T, L]
	rest   rest.Interface
	params runtime.ParameterCodec
}

// connect makes a connection with an HTTP client of its own. It shares a rate limit
// with others if cfg.RateLimiter is set.
func connect[T object, L runtime.Object](cfg *rest.Config, k kind[T, L]) (*connection[T, L], error) {
	known, err := k.codecs()
	if err != nil {
		return nil, err
	}
	kinds, _, err := known.scheme.ObjectKinds(k.newObject())
	if err != nil {
		return nil, err
	}
	version := k.resource.GroupVersion()
	c := rest.CopyConfig(cfg)
	c.GroupVersion = &version
	c.APIPath = "/apis"
	// The caller may have asked for protobuf, which custom resources do not speak.
	c.ContentType = runtime.ContentTypeJSON
	c.AcceptContentTypes = runtime.ContentTypeJSON
	c.NegotiatedSerializer = expect(kinds[0], known)
	if c.UserAgent == "" {
		c.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	restClient, err := rest.RESTClientFor(c)
	return &connection[T, L]{kind: k, rest: restClient, params: known.params}, err
}

// in gives access to the objects of a namespace.
func (c *connection[T, L]) in(namespace string) Objects[T, L] {
	return &scaled[T, L]{
		ClientWithList: gentype.NewClientWithList(c.resource.Resource, c.rest, c.params, namespace, c.newObject, c.newList),
		resource:       c.resource.Resource, params: c.params,
	}
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
