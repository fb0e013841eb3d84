package controller

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"tkestack.io/tapp/controller/advdeployment"
	"tkestack.io/tapp/crd/bases"
	"tkestack.io/tapp/crd/client"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/crd/workload/v1beta1"
)

// advDeploymentCRDs are its own, and that of the children which no cluster has by itself.
func advDeploymentCRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return bases.CRDs(v1beta1.KindAdvDeployment, tappv1.Kind)
}

func newAdvDeployments(s setup) (kindController, error) {
	c := s.config
	requests, err := newAdvDeploymentClients(s.api.requests)
	if err != nil {
		return nil, err
	}
	watches, err := newAdvDeploymentClients(s.api.watches)
	if err != nil {
		return nil, err
	}
	events, err := corev1client.NewForConfig(s.api.events)
	if err != nil {
		return nil, fmt.Errorf("making a client of events: %w", err)
	}
	return advdeployment.New(advdeployment.Options{
		Clients: requests, Watching: watches, Events: events,
		Namespace: c.Namespace, Workers: c.Workers,
		Metrics: advdeployment.NewMetrics(c.Registry), Queue: s.queue, Host: s.host, Clock: c.Clock,
	})
}

func newAdvDeploymentClients(api *rest.Config) (c advdeployment.Clients, err error) {
	if c.AdvDeployments, err = client.NewAdvDeployments(api); err != nil {
		return c, fmt.Errorf("making a client of AdvDeployments: %w", err)
	}
	if c.Children, err = dynamic.NewForConfig(api); err != nil {
		return c, fmt.Errorf("making a client of their children: %w", err)
	}
	return c, nil
}
