package process

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// FindAPIServer says where the API server is: given is taken if it is not nil, then
// the kubeconfig of that path, and without one the KUBECONFIG variable, the user's
// own, or the cluster that this runs in. master replaces the address that a
// kubeconfig has.
func FindAPIServer(given *rest.Config, kubeconfig, master string) (*rest.Config, error) {
	if given != nil {
		return rest.CopyConfig(given), nil
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	overrides := &clientcmd.ConfigOverrides{}
	overrides.ClusterInfo.Server = master
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w", err)
	}
	return cfg, nil
}
