package client

import (
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// ConfirmationInterface reads and writes Confirmations.
type ConfirmationInterface = Objects[*v1beta1.Confirmation, *v1beta1.ConfirmationList]

// ConfirmationsGetter gives access to the Confirmations of a namespace, or of all
// namespaces by metav1.NamespaceAll.
type ConfirmationsGetter interface {
	Confirmations(namespace string) ConfirmationInterface
}

// ConfirmationClient implements ConfirmationsGetter.
type ConfirmationClient struct {
	connection *connection[*v1beta1.Confirmation, *v1beta1.ConfirmationList]
}

var _ ConfirmationsGetter = (*ConfirmationClient)(nil)

func confirmations() kind[*v1beta1.Confirmation, *v1beta1.ConfirmationList] {
	return kind[*v1beta1.Confirmation, *v1beta1.ConfirmationList]{
		resource: v1beta1.Confirmations(), codecs: workload,
		newObject: func() *v1beta1.Confirmation { return &v1beta1.Confirmation{} },
		newList:   func() *v1beta1.ConfirmationList { return &v1beta1.ConfirmationList{} },
	}
}

// NewConfirmations is New for Confirmations.
func NewConfirmations(cfg *rest.Config) (*ConfirmationClient, error) {
	c, err := connect(cfg, confirmations())
	if err != nil {
		return nil, err
	}
	return &ConfirmationClient{c}, nil
}

// Confirmations gives access to the Confirmations of a namespace.
func (c *ConfirmationClient) Confirmations(namespace string) ConfirmationInterface {
	return c.connection.in(namespace)
}

// ConfirmationInformer is a shared informer of Confirmations whose handlers and indexers
// are typed.
type ConfirmationInformer = cache.TypedSharedIndexInformer[*v1beta1.Confirmation]

// NewConfirmationInformer is NewInformer for Confirmations.
func NewConfirmationInformer(c ConfirmationsGetter, namespace string, transform cache.TransformFunc) (ConfirmationInformer, error) {
	return newInformer(c.Confirmations(namespace), confirmations(), transform)
}
