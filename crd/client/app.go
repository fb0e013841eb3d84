package client

import (
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	appv1 "tkestack.io/tapp/crd/app/v1"
)

// AppInterface reads and writes Apps.
type AppInterface = Objects[*appv1.App, *appv1.AppList]

// AppsGetter gives access to the Apps of a namespace, or of all namespaces by
// metav1.NamespaceAll.
type AppsGetter interface {
	Apps(namespace string) AppInterface
}

// AppClient implements AppsGetter.
type AppClient struct {
	connection *connection[*appv1.App, *appv1.AppList]
}

var _ AppsGetter = (*AppClient)(nil)

func apps() kind[*appv1.App, *appv1.AppList] {
	return kind[*appv1.App, *appv1.AppList]{
		resource: appv1.Resource(), codecs: codecsOf(appv1.AddToScheme),
		newObject: func() *appv1.App { return &appv1.App{} },
		newList:   func() *appv1.AppList { return &appv1.AppList{} },
	}
}

// NewApps is New for Apps.
func NewApps(cfg *rest.Config) (*AppClient, error) {
	c, err := connect(cfg, apps())
	if err != nil {
		return nil, err
	}
	return &AppClient{c}, nil
}

// Apps gives access to the Apps of a namespace.
func (c *AppClient) Apps(namespace string) AppInterface { return c.connection.in(namespace) }

// AppInformer is a shared informer of Apps whose handlers and indexers are typed.
type AppInformer = cache.TypedSharedIndexInformer[*appv1.App]

// NewAppInformer is NewInformer for Apps.
func NewAppInformer(c AppsGetter, namespace string, transform cache.TransformFunc) (AppInformer, error) {
	return newInformer(c.Apps(namespace), apps(), transform)
}
