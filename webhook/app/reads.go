package app

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appv1 "tkestack.io/tapp/crd/app/v1"
	"tkestack.io/tapp/crd/client"
)

// LiveNaming lists the Apps of the namespace, from the API server's cache: advice
// need not be newer.
func LiveNaming(apps client.AppsGetter) Naming {
	return func(ctx context.Context, kind, namespace, name string) ([]*appv1.App, error) {
		list, err := apps.Apps(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return nil, fmt.Errorf("list the Apps of namespace %s: %w", namespace, err)
		}
		var out []*appv1.App
		for i := range list.Items {
			s := &list.Items[i].Spec
			if kind == "Deployment" && s.DeploymentTemplate.Name == name || kind == "Service" && s.ServiceTemplate.Name == name {
				out = append(out, &list.Items[i])
			}
		}
		return out, nil
	}
}
