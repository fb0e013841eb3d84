package helm

import (
	"bufio"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// sourceComment is what helm writes above each object of a manifest.
const sourceComment = "# Source: "

// Objects reads a manifest, in its order. Lists become their items. An object without
// apiVersion, kind or name is an error that names its template.
func Objects(manifest string) ([]Object, error) {
	documents := releaseutil.SplitManifests(manifest)
	keys := make([]string, 0, len(documents))
	for key := range documents {
		keys = append(keys, key)
	}
	sort.Sort(releaseutil.BySplitManifestsOrder(keys))
	var out []Object
	for _, key := range keys {
		source := sourceOf(documents[key])
		objects, err := decode(documents[key])
		if err != nil {
			if source != "" {
				err = fmt.Errorf("%s: %w", source, err)
			}
			return nil, err
		}
		for _, o := range objects {
			out = append(out, Object{Source: source, Unstructured: o})
		}
	}
	return out, nil
}

// sourceOf reads the comment above an object.
func sourceOf(document string) string {
	lines := bufio.NewScanner(strings.NewReader(document))
	lines.Buffer(nil, len(document)+1)
	for lines.Scan() && strings.HasPrefix(lines.Text(), "#") {
		if source, ok := strings.CutPrefix(lines.Text(), sourceComment); ok {
			return source
		}
	}
	return ""
}

// decode reads one document; nothing but comments is no object.
func decode(document string) ([]*unstructured.Unstructured, error) {
	raw, err := yaml.YAMLToJSON([]byte(document))
	if err != nil {
		return nil, err
	}
	if string(raw) == "null" {
		return nil, nil
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw); err != nil {
		return nil, fmt.Errorf("no object of Kubernetes: %w", plainError(err))
	}
	if !object.IsList() {
		return []*unstructured.Unstructured{object}, complete(object)
	}
	var out []*unstructured.Unstructured
	err = object.EachListItem(func(item runtime.Object) error {
		one, ok := item.(*unstructured.Unstructured)
		if !ok {
			return errors.New("a list of what is no object")
		}
		out = append(out, one)
		return complete(one)
	})
	return out, err
}

// plainError leaves out the copy of the whole document that apimachinery puts into
// some of its messages.
func plainError(err error) error {
	if runtime.IsMissingKind(err) {
		return errors.New("kind is missing")
	}
	if runtime.IsMissingVersion(err) {
		return errors.New("apiVersion is missing")
	}
	return err
}

func complete(o *unstructured.Unstructured) error {
	switch {
	case o.GetAPIVersion() == "":
		return errors.New("no object of Kubernetes: apiVersion is missing")
	case o.GetKind() == "":
		return errors.New("no object of Kubernetes: kind is missing")
	case o.GetName() == "":
		return fmt.Errorf("%s without metadata.name", o.GetKind())
	}
	return nil
}

// UninstallOrder sorts objects as helm deletes them: by kind, those that it does not
// know last. The order of objects of one kind stays.
func UninstallOrder(objects []Object) []Object {
	rank := func(o Object) int {
		if i := slices.Index(releaseutil.UninstallOrder, o.GetKind()); i >= 0 {
			return i
		}
		return len(releaseutil.UninstallOrder)
	}
	out := slices.Clone(objects)
	slices.SortStableFunc(out, func(a, b Object) int {
		if rank(a) != rank(b) || rank(a) < len(releaseutil.UninstallOrder) {
			return rank(a) - rank(b)
		}
		return strings.Compare(a.GetKind(), b.GetKind())
	})
	return out
}
