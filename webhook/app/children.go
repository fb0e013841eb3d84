package app

import (
	"context"
	"fmt"

	appv1 "tkestack.io/tapp/crd/app/v1"
)

// Naming returns the Apps of a namespace that name a child of this kind and name.
type Naming func(ctx context.Context, kind, namespace, name string) ([]*appv1.App, error)

// adviseChildren warns of other Apps that name the same children: one of them gets
// the child, and the others wait for the name. It is no error, because the order of
// writes decides: two Apps may exchange names, and one may take over from another
// that is deleted a moment later. The two children of one App cannot clash, since
// their kinds differ.
func adviseChildren(ctx context.Context, a *appv1.App, naming Naming) ([]string, error) {
	var out []string
	for _, child := range []struct{ field, kind, name string }{
		{"spec.deploymentTemplate.name", "Deployment", a.Spec.DeploymentTemplate.Name},
		{"spec.serviceTemplate.name", "Service", a.Spec.ServiceTemplate.Name},
	} {
		if child.name == "" {
			continue
		}
		others, err := naming(ctx, child.kind, a.Namespace, child.name)
		if err != nil {
			return out, fmt.Errorf("look for other Apps that name %s %q: %w", child.kind, child.name, err)
		}
		for _, o := range others {
			if o.Name != a.Name {
				out = append(out, fmt.Sprintf("%s: the App %q names the %s %q too; only one of them can have it, and the other one is Stalled until the name is free",
					child.field, o.Name, child.kind, child.name))
				break
			}
		}
	}
	return out, nil
}
