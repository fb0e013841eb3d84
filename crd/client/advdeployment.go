package client

import (
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// AdvDeploymentInterface reads and writes AdvDeployments.
type AdvDeploymentInterface = Objects[*v1beta1.AdvDeployment, *v1beta1.AdvDeploymentList]

// AdvDeploymentsGetter gives access to the AdvDeployments of a namespace, or of all namespaces by
// metav1.NamespaceAll.
type AdvDeploymentsGetter interface {
	AdvDeployments(namespace string) AdvDeploymentInterface
}

// AdvDeploymentClient implements AdvDeploymentsGetter.
type AdvDeploymentClient struct {
	connection *connection[*v1beta1.AdvDeployment, *v1beta1.AdvDeploymentList]
}

var _ AdvDeploymentsGetter = (*AdvDeploymentClient)(nil)

func advDeployments() kind[*v1beta1.AdvDeployment, *v1beta1.AdvDeploymentList] {
	return kind[*v1beta1.AdvDeployment, *v1beta1.AdvDeploymentList]{
		resource: v1beta1.AdvDeployments(), codecs: workload,
		newObject: func() *v1beta1.AdvDeployment { return &v1beta1.AdvDeployment{} },
		newList:   func() *v1beta1.AdvDeploymentList { return &v1beta1.AdvDeploymentList{} },
	}
}

// NewAdvDeployments is New for AdvDeployments.
func NewAdvDeployments(cfg *rest.Config) (*AdvDeploymentClient, error) {
	c, err := connect(cfg, advDeployments())
	if err != nil {
		return nil, err
	}
	return &AdvDeploymentClient{c}, nil
}

// AdvDeployments gives access to the AdvDeployments of a namespace.
func (c *AdvDeploymentClient) AdvDeployments(namespace string) AdvDeploymentInterface {
	return c.connection.in(namespace)
}

// AdvDeploymentInformer is a shared informer of AdvDeployments whose handlers and indexers are typed.
type AdvDeploymentInformer = cache.TypedSharedIndexInformer[*v1beta1.AdvDeployment]

// NewAdvDeploymentInformer is NewInformer for AdvDeployments.
func NewAdvDeploymentInformer(c AdvDeploymentsGetter, namespace string, transform cache.TransformFunc) (AdvDeploymentInformer, error) {
	return newInformer(c.AdvDeployments(namespace), advDeployments(), transform)
}
