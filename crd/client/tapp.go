package client

import (
	"k8s.io/client-go/listers"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// TAppInterface reads and writes TApps.
type TAppInterface = Objects[*tappv1.TApp, *tappv1.TAppList]

// Interface gives access to the TApps of a namespace, or of all namespaces by
// metav1.NamespaceAll.
type Interface interface {
	TApps(namespace string) TAppInterface
}

// Client implements Interface.
type Client struct {
	connection *connection[*tappv1.TApp, *tappv1.TAppList]
}

var _ Interface = (*Client)(nil)

func tapps() kind[*tappv1.TApp, *tappv1.TAppList] {
	return kind[*tappv1.TApp, *tappv1.TAppList]{
		resource: tappv1.Resource(), codecs: codecsOf(tappv1.AddToScheme),
		newObject: func() *tappv1.TApp { return &tappv1.TApp{} },
		newList:   func() *tappv1.TAppList { return &tappv1.TAppList{} },
	}
}

// New makes a client with an HTTP client of its own. It shares a rate limit with
// others if cfg.RateLimiter is set.
func New(cfg *rest.Config) (*Client, error) {
	c, err := connect(cfg, tapps())
	if err != nil {
		return nil, err
	}
	return &Client{c}, nil
}

// TApps gives access to the TApps of a namespace.
func (c *Client) TApps(namespace string) TAppInterface { return c.connection.in(namespace) }

// Informer is a shared informer of TApps whose handlers and indexers are typed.
type Informer = cache.TypedSharedIndexInformer[*tappv1.TApp]

// NewInformer makes an informer of the TApps in a namespace, or in all namespaces
// by metav1.NamespaceAll. It never resyncs: handlers see real changes only. The
// transform, which may be nil, edits every object before it is cached.
func NewInformer(c Interface, namespace string, transform cache.TransformFunc) (Informer, error) {
	return newInformer(c.TApps(namespace), tapps(), transform)
}

// Lister reads TApps from an informer's cache. What it returns is shared: copy
// before writing to it.
type Lister struct {
	listers.ResourceIndexer[*tappv1.TApp]
}

// NewLister makes a lister of all namespaces that the informer watches.
func NewLister(informer cache.SharedIndexInformer) Lister {
	return Lister{listers.New[*tappv1.TApp](informer.GetIndexer(), tappv1.Resource().GroupResource())}
}

// TApps makes a lister of one namespace.
func (l Lister) TApps(namespace string) listers.ResourceIndexer[*tappv1.TApp] {
	return listers.NewNamespaced(l.ResourceIndexer, namespace)
}
