package client

import (
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// AppSetInterface reads and writes AppSets.
type AppSetInterface = Objects[*v1beta1.AppSet, *v1beta1.AppSetList]

// AppSetsGetter gives access to the AppSets of a namespace, or of all namespaces by
// metav1.NamespaceAll.
type AppSetsGetter interface {
	AppSets(namespace string) AppSetInterface
}

// AppSetClient implements AppSetsGetter.
type AppSetClient struct {
	connection *connection[*v1beta1.AppSet, *v1beta1.AppSetList]
}

var _ AppSetsGetter = (*AppSetClient)(nil)

func appSets() kind[*v1beta1.AppSet, *v1beta1.AppSetList] {
	return kind[*v1beta1.AppSet, *v1beta1.AppSetList]{
		resource: v1beta1.AppSets(), codecs: workload,
		newObject: func() *v1beta1.AppSet { return &v1beta1.AppSet{} },
		newList:   func() *v1beta1.AppSetList { return &v1beta1.AppSetList{} },
	}
}

// NewAppSets is New for AppSets.
func NewAppSets(cfg *rest.Config) (*AppSetClient, error) {
	c, err := connect(cfg, appSets())
	if err != nil {
		return nil, err
	}
	return &AppSetClient{c}, nil
}

// AppSets gives access to the AppSets of a namespace.
func (c *AppSetClient) AppSets(namespace string) AppSetInterface { return c.connection.in(namespace) }

// AppSetInformer is a shared informer of AppSets whose handlers and indexers are typed.
type AppSetInformer = cache.TypedSharedIndexInformer[*v1beta1.AppSet]

// NewAppSetInformer is NewInformer for AppSets.
func NewAppSetInformer(c AppSetsGetter, namespace string, transform cache.TransformFunc) (AppSetInformer, error) {
	return newInformer(c.AppSets(namespace), appSets(), transform)
}
