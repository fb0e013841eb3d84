package helm

import (
	"fmt"
	"maps"
	"path"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
)

// Discovery is the part of client-go's discovery client that capabilities need.
type Discovery interface {
	ServerVersion() (*version.Info, error)
	ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error)
}

// Capabilities reads what .Capabilities tells a chart of a cluster, as helm does: the
// version, and each group version alone and with each of its kinds. APIs whose servers
// do not answer are left out.
func Capabilities(d Discovery) (kubeVersion string, apiVersions []string, err error) {
	info, err := d.ServerVersion()
	if err != nil {
		return "", nil, fmt.Errorf("reading the version of Kubernetes: %w", err)
	}
	groups, lists, err := d.ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return "", nil, fmt.Errorf("reading the APIs of Kubernetes: %w", err)
	}
	known := map[string]bool{}
	for _, group := range groups {
		for _, v := range group.Versions {
			known[v.GroupVersion] = true
		}
	}
	for _, list := range lists {
		for _, resource := range list.APIResources {
			known[path.Join(list.GroupVersion, resource.Kind)] = true
		}
	}
	return info.GitVersion, slices.Sorted(maps.Keys(known)), nil
}
