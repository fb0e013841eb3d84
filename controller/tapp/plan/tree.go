package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// treeOf is the template as a JSON tree of what it sets: fields that are no
// pointers and have their zero value are left out, whatever their json tags say.
// encoding/json writes such fields in some releases of the types and not in
// others (creationTimestamp: null, resources: {}).
func treeOf(t *corev1.PodTemplateSpec) (map[string]any, error) {
	if t == nil {
		return nil, nil
	}
	return structTree(reflect.ValueOf(t).Elem())
}

// jsonField is a field of a struct, embedded ones flattened.
type jsonField struct {
	index []int
	name  string
	// mergeKey of a list's elements in a strategic merge patch.
	mergeKey string
}

// jsonFieldsCache keeps []jsonField by reflect.Type.
var jsonFieldsCache sync.Map //nolint:gochecknoglobals // what a type is never changes

// jsonFields of a struct type, in the order of their declaration.
func jsonFields(t reflect.Type) []jsonField {
	if cached, ok := jsonFieldsCache.Load(t); ok {
		return cached.([]jsonField)
	}
	var fields []jsonField
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
		case name == "" && f.Anonymous:
			for _, inner := range jsonFields(f.Type) {
				inner.index = append([]int{i}, inner.index...)
				fields = append(fields, inner)
			}
		default:
			fields = append(fields, jsonField{[]int{i}, cmp.Or(name, f.Name), f.Tag.Get("patchMergeKey")})
		}
	}
	jsonFieldsCache.Store(t, fields)
	return fields
}

var (
	quantityType    = reflect.TypeFor[resource.Quantity]()
	intOrStringType = reflect.TypeFor[intstr.IntOrString]()
	marshalerType   = reflect.TypeFor[json.Marshaler]()
)

func structTree(v reflect.Value) (map[string]any, error) {
	tree := map[string]any{}
	for _, f := range jsonFields(v.Type()) {
		field := v.FieldByIndex(f.index)
		if unset(field) {
			continue
		}
		value, err := valueTree(field)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		if m, ok := value.(map[string]any); value == nil || ok && len(m) == 0 && field.Kind() == reflect.Struct {
			continue
		}
		tree[f.name] = value
	}
	return tree, nil
}

// unset is true for a field that says nothing.
func unset(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	case reflect.Struct:
		if v.Type() == quantityType {
			q := v.Interface().(resource.Quantity)
			return q.IsZero()
		}
		// Other structs are taken apart anyway, and give an empty tree.
		return v.Type() == intOrStringType && v.IsZero()
	}
	return v.IsZero()
}

func valueTree(v reflect.Value) (any, error) {
	switch t := v.Type(); {
	case t == quantityType:
		q := v.Interface().(resource.Quantity)
		return q.String(), nil
	case t == intOrStringType:
		i := v.Interface().(intstr.IntOrString)
		if i.Type == intstr.Int {
			return int64(i.IntVal), nil
		}
		return i.StrVal, nil
	case t.Kind() == reflect.Struct && reflect.PointerTo(t).Implements(marshalerType):
		return marshalerTree(v)
	}
	switch v.Kind() {
	case reflect.Pointer:
		return valueTree(v.Elem())
	case reflect.Struct:
		return structTree(v)
	case reflect.String:
		return v.String(), nil
	case reflect.Bool:
		return v.Bool(), nil
	case reflect.Int, reflect.Int32, reflect.Int64:
		return v.Int(), nil
	case reflect.Slice:
		return listTree(v)
	case reflect.Map:
		return mapTree(v)
	}
	return nil, fmt.Errorf("a value of type %s has no JSON tree", v.Type())
}

func listTree(v reflect.Value) (any, error) {
	list := make([]any, v.Len())
	for i := range list {
		element, err := valueTree(v.Index(i))
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
		list[i] = element
	}
	return list, nil
}

func mapTree(v reflect.Value) (any, error) {
	tree := make(map[string]any, v.Len())
	for iter := v.MapRange(); iter.Next(); {
		element, err := valueTree(iter.Value())
		if err != nil {
			return nil, fmt.Errorf("[%s]: %w", iter.Key(), err)
		}
		tree[iter.Key().String()] = element
	}
	return tree, nil
}

// marshalerTree is for the few types that render themselves, such as metav1.Time.
func marshalerTree(v reflect.Value) (any, error) {
	data, err := json.Marshal(v.Interface())
	if err != nil {
		return nil, err
	}
	var tree any
	if err := json.Unmarshal(data, &tree); err != nil {
		return nil, err
	}
	return tree, nil
}
