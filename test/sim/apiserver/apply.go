package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"
)

// Fields owns the fields of objects of one kind, as server-side apply does.
type Fields struct {
	manager *managedfields.FieldManager
}

// FieldsOf the kind of a CRD, by the API server's own code.
func FieldsOf(crd *apiextensionsv1.CustomResourceDefinition) (*Fields, error) {
	if len(crd.Spec.Versions) != 1 {
		return nil, errors.New("a CRD of one version is expected")
	}
	version := crd.Spec.Versions[0].Name
	definitions, err := definitionsOf(crd)
	if err != nil {
		return nil, fmt.Errorf("reading the schema of %s: %w", crd.Name, err)
	}
	types, err := managedfields.NewTypeConverter(definitions, false)
	if err != nil {
		return nil, fmt.Errorf("reading the schema of %s: %w", crd.Name, err)
	}
	gv := schema.GroupVersion{Group: crd.Spec.Group, Version: version}
	manager, err := managedfields.NewDefaultCRDFieldManager(types, asIs{}, asIs{}, asIs{}, gv.WithKind(crd.Spec.Names.Kind), gv, "", nil)
	if err != nil {
		return nil, fmt.Errorf("managing fields of %s: %w", crd.Name, err)
	}
	return &Fields{manager}, nil
}

// FieldsOfKind owns the fields of a kind of Kubernetes' own.
func FieldsOfKind(kind schema.GroupVersionKind) (*Fields, error) {
	gv := kind.GroupVersion()
	manager, err := managedfields.NewDefaultFieldManager(applyconfigurations.NewTypeConverter(scheme.Scheme), asIs{}, asIs{}, asIs{}, kind, gv, "", nil)
	if err != nil {
		return nil, fmt.Errorf("managing fields of %s: %w", kind.Kind, err)
	}
	return &Fields{manager}, nil
}

// metadata is what of an object's metadata several may own.
const metadata = `{"type": "object", "properties": {
  "name": {"type": "string"}, "namespace": {"type": "string"}, "generateName": {"type": "string"},
  "labels": {"type": "object", "additionalProperties": {"type": "string"}},
  "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
  "finalizers": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
  "ownerReferences": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"],
    "items": {"type": "object", "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "name": {"type": "string"},
      "uid": {"type": "string"}, "controller": {"type": "boolean"}, "blockOwnerDeletion": {"type": "boolean"}}}}},
  "x-kubernetes-preserve-unknown-fields": true}`

// definitionsOf the kind of a CRD in OpenAPI.
func definitionsOf(crd *apiextensionsv1.CustomResourceDefinition) (map[string]*spec.Schema, error) {
	version := crd.Spec.Versions[0]
	text, err := json.Marshal(version.Schema.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	kind, meta := &spec.Schema{}, &spec.Schema{}
	if err := json.Unmarshal(text, kind); err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(metadata), meta); err != nil {
		return nil, err
	}
	kind.Properties["metadata"] = *meta
	kind.AddExtension("x-kubernetes-group-version-kind", []any{map[string]any{"group": crd.Spec.Group, "version": version.Name, "kind": crd.Spec.Names.Kind}})
	return map[string]*spec.Schema{crd.Spec.Names.Kind: kind}, nil
}

// asIs converts between the versions of a kind that has one, without defaults.
type asIs struct{ runtime.ObjectConvertor }

func (asIs) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

func (asIs) Default(runtime.Object) {}

func (asIs) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(kind)
	return out, nil
}

// Apply merges a configuration into an object.
func (f *Fields) Apply(live, config *unstructured.Unstructured, manager string, force bool) (*unstructured.Unstructured, error) {
	merged, err := f.manager.Apply(live, config, manager, force)
	if err != nil {
		return nil, err
	}
	out, ok := merged.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("%T came of an apply", merged)
	}
	return out, nil
}

// Apply is a PATCH of the type apply: it creates, or merges.
func (s *Server) Apply(r *Request, who Actor) (Object, error) {
	k := s.kinds[r.Resource]
	config := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(r.Body, &config.Object); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	manager, force := r.Query.Get("fieldManager"), r.Query.Get("force") == "true"
	uid, version := config.GetUID(), config.GetResourceVersion()
	old := s.Get(r.Resource, r.Key())
	if old == nil {
		if uid != "" {
			return nil, s.conflict(r.Resource, r.Name, "uid mismatch: the provided object specified uid %s, and no existing object was found", uid)
		}
		return s.applyNew(r, config, who)
	}
	live, err := s.plain(k, old)
	if err != nil {
		return nil, err
	}
	switch {
	case uid != "" && uid != old.GetUID():
		return nil, s.conflict(r.Resource, r.Name, "uid mismatch: the provided object specified uid %s, and the existing object has %s", uid, old.GetUID())
	case version != "" && version != old.GetResourceVersion():
		return nil, s.conflict(r.Resource, r.Name, "the object has been modified; please apply your changes to the latest version and try again")
	}
	merged, err := k.Fields.Apply(live, bare(config), manager, force)
	if err != nil {
		return nil, err
	}
	return s.update(r.Resource, r.Key(), r.Sub, who, func(o Object) error { return typed(k, merged, o) }, nil)
}

func (s *Server) applyNew(r *Request, config *unstructured.Unstructured, who Actor) (Object, error) {
	k := s.kinds[r.Resource]
	empty := &unstructured.Unstructured{}
	empty.SetGroupVersionKind(k.GVK)
	made, err := k.Fields.Apply(empty, bare(config), r.Query.Get("fieldManager"), true)
	if err != nil {
		return nil, err
	}
	o := k.New()
	if err := typed(k, made, o); err != nil {
		return nil, err
	}
	o.SetNamespace(r.Namespace)
	return s.create(r.Resource, o, who, nil)
}

// own notes which fields a write that is no apply has taken.
func (s *Server) own(k Kind, old, now Object, manager string) error {
	before := &unstructured.Unstructured{}
	before.SetGroupVersionKind(k.GVK)
	if old != nil {
		var err error
		if before, err = s.plain(k, old); err != nil {
			return err
		}
	}
	after, err := s.plain(k, now)
	if err != nil {
		return err
	}
	entries, err := k.Fields.Update(before, after, manager)
	if err != nil {
		return err
	}
	now.SetManagedFields(entries)
	return nil
}

// Update is what metadata.managedFields become by a write that is no apply.
func (f *Fields) Update(before, after *unstructured.Unstructured, manager string) ([]metav1.ManagedFieldsEntry, error) {
	owned, err := f.manager.Update(before, after, manager)
	if err != nil {
		return nil, err
	}
	m, err := meta.Accessor(owned)
	if err != nil {
		return nil, err
	}
	return m.GetManagedFields(), nil
}

// owning is own, for kinds whose fields are owned by who updates them, too.
func (s *Server) owning(resource string, who Actor) func(old, now Object) error {
	k := s.kinds[resource]
	if !k.Tracked {
		return nil
	}
	return func(old, now Object) error { return s.own(k, old, now, who.By) }
}

// bare is a configuration without what only stands for a condition.
func bare(config *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: maps.Clone(config.Object)}
	if metadata, ok := out.Object["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "uid")
		delete(metadata, "resourceVersion")
		out.Object["metadata"] = metadata
	}
	return out
}

// plain is an object without its type.
func (s *Server) plain(k Kind, o Object) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	out := &unstructured.Unstructured{Object: fields}
	out.SetGroupVersionKind(k.GVK)
	return out, nil
}

// typed writes what merged says into o.
func typed(k Kind, merged *unstructured.Unstructured, o Object) error {
	body, err := json.Marshal(merged)
	if err != nil {
		return err
	}
	empty := k.New()
	if err := json.Unmarshal(body, empty); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return Assign(o, empty)
}
