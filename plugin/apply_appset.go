package plugin

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plugin/fleet"
)

// applyAppSets is a dry run of `kubectl apply` for the AppSets of files.
func (e *environment) applyAppSets(ctx context.Context, files []string, serverSide bool) ([]fleet.Applied, error) {
	s, err := e.connect()
	if err != nil {
		return nil, err
	}
	manifests, err := e.manifestsOf(s, v1beta1.SchemeGroupVersion.WithKind(v1beta1.KindAppSet), files)
	if err != nil {
		return nil, err
	}
	var out []fleet.Applied
	for _, u := range manifests {
		live, after, err := dryRun(ctx, s.dynamic.Resource(v1beta1.AppSets()).Namespace(u.GetNamespace()), u, serverSide)
		if err != nil {
			return nil, refused(u.GetName(), err)
		}
		one := fleet.Applied{}
		if one.After, err = appSetOf(after); err != nil {
			return nil, err
		}
		if live != nil {
			if one.Before, err = appSetOf(live); err != nil {
				return nil, err
			}
		}
		out = append(out, one)
	}
	return out, nil
}

func appSetOf(u *unstructured.Unstructured) (*v1beta1.AppSet, error) {
	out := &v1beta1.AppSet{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
		return nil, fmt.Errorf("reading the AppSet: %w", err)
	}
	return out, nil
}
