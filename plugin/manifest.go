package plugin

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// manifests reads the TApps of files.
func (e *environment) manifests(s *session, files []string) ([]*unstructured.Unstructured, error) {
	return e.manifestsOf(s, tappv1.GroupVersionKind(), files)
}

// manifestsOf a kind in files. Objects of other kinds are left out, with a note.
func (e *environment) manifestsOf(s *session, kind schema.GroupVersionKind, files []string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, file := range files {
		objects, err := e.read(file)
		if err != nil {
			return nil, err
		}
		for _, u := range objects {
			if u.GroupVersionKind() != kind {
				_, _ = fmt.Fprintf(e.streams.ErrOut, "Left out: %s %s\n", u.GetKind(), u.GetName())
				continue
			}
			switch own := u.GetNamespace(); {
			case own == "":
				u.SetNamespace(s.namespace)
			case own != s.namespace && s.enforced:
				return nil, fmt.Errorf("%s is in namespace %q by its manifest, and in %q by --namespace", u.GetName(), own, s.namespace)
			}
			out = append(out, u)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("there is no %s in the manifest", kind.Kind)
	}
	return out, nil
}

// read the objects of a file, of the files of a directory, or of the standard
// input ("-").
func (e *environment) read(file string) ([]*unstructured.Unstructured, error) {
	if file == "-" {
		return decode("the standard input", e.streams.In)
	}
	paths := []string{file}
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		entries, err := os.ReadDir(file)
		if err != nil {
			return nil, fmt.Errorf("reading the manifest: %w", err)
		}
		paths = nil
		for _, entry := range entries {
			if slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(entry.Name())) && !entry.IsDir() {
				paths = append(paths, filepath.Join(file, entry.Name()))
			}
		}
	}
	var out []*unstructured.Unstructured
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading the manifest: %w", err)
		}
		objects, err := decode(path, bytes.NewReader(text))
		if err != nil {
			return nil, err
		}
		out = append(out, objects...)
	}
	return out, nil
}

// decode reads documents of YAML or JSON. The items of a List count as documents.
func decode(from string, r io.Reader) ([]*unstructured.Unstructured, error) {
	const lookAhead = 4096
	decoder := yaml.NewYAMLOrJSONDecoder(r, lookAhead)
	var out []*unstructured.Unstructured
	for {
		u := &unstructured.Unstructured{}
		switch err := decoder.Decode(&u.Object); {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("reading %s: %w", from, err)
		case len(u.Object) == 0: // nothing between two separators
			continue
		case u.GetKind() == "":
			return nil, fmt.Errorf("reading %s: an object without a kind", from)
		case !u.IsList():
			out = append(out, u)
			continue
		}
		err := u.EachListItem(func(o runtime.Object) error {
			item, ok := o.(*unstructured.Unstructured)
			if !ok {
				return fmt.Errorf("reading %s: an item that is no object", from)
			}
			out = append(out, item)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
}
