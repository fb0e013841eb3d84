// Package bases holds the CustomResourceDefinitions, which are generated from the
// types (make generate).
package bases

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

//go:embed *.yaml
var files embed.FS

// CRDs reads the CustomResourceDefinitions of the given kinds that are built into
// the program, or all if none is given, in the order of their names.
func CRDs(kinds ...string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, err
	}
	crds := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(names))
	for _, name := range names {
		content, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(content, crd); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if len(kinds) == 0 || slices.Contains(kinds, crd.Spec.Names.Kind) {
			crds = append(crds, crd)
		}
	}
	return crds, nil
}
