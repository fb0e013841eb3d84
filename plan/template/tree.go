package template

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// jsonField is a field of a struct, embedded ones flattened.
type jsonField struct {
	index []int
	name  string
	// mergeKey of a list's elements in a strategic merge patch.
	mergeKey string
}

// jsonType is a struct type as JSON.
type jsonType struct {
	// fields in the order of their declaration, and of their names' bytes.
	fields, sorted []jsonField
	// marshals: it renders itself, such as metav1.Time.
	marshals bool
}

// jsonTypes keeps *jsonType by reflect.Type.
var jsonTypes sync.Map //nolint:gochecknoglobals // what a type is never changes

func jsonTypeOf(t reflect.Type) *jsonType {
	if cached, ok := jsonTypes.Load(t); ok {
		return cached.(*jsonType)
	}
	out := &jsonType{marshals: reflect.PointerTo(t).Implements(marshalerType)}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
		case name == "" && f.Anonymous:
			for _, inner := range jsonFields(f.Type) {
				inner.index = append([]int{i}, inner.index...)
				out.fields = append(out.fields, inner)
			}
		default:
			out.fields = append(out.fields, jsonField{[]int{i}, cmp.Or(name, f.Name), f.Tag.Get("patchMergeKey")})
		}
	}
	out.sorted = slices.SortedFunc(slices.Values(out.fields), func(a, b jsonField) int { return strings.Compare(a.name, b.name) })
	jsonTypes.Store(t, out)
	return out
}

// jsonFields of a struct type, in the order of their declaration.
func jsonFields(t reflect.Type) []jsonField { return jsonTypeOf(t).fields }

var (
	quantityType    = reflect.TypeFor[resource.Quantity]()
	intOrStringType = reflect.TypeFor[intstr.IntOrString]()
	marshalerType   = reflect.TypeFor[json.Marshaler]()
)

// typed writes a value of a Kubernetes type like the JSON of what it sets: fields
// that are no pointers and have their zero value are left out, whatever their json
// tags say. encoding/json writes such fields in some releases of the types and not
// in others (creationTimestamp: null, resources: {}).
func (w *canonicalWriter) typed(s *node, v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer:
		return w.typed(s, v.Elem())
	case reflect.Struct:
		return w.typedStruct(s, v)
	case reflect.String:
		return w.text(s, v.String())
	case reflect.Bool:
		return w.member(s, v.Bool())
	case reflect.Int, reflect.Int32, reflect.Int64:
		return w.number(s, strconv.FormatInt(v.Int(), 10))
	case reflect.Slice:
		return w.typedList(s, v)
	case reflect.Map:
		return w.typedMap(s, v)
	}
	w.fail("a value of type %s has no JSON", v.Type())
	return false
}

func (w *canonicalWriter) typedStruct(s *node, v reflect.Value) bool {
	switch v.Type() {
	case quantityType:
		q := v.Interface().(resource.Quantity)
		return w.text(s, q.String())
	case intOrStringType:
		i := v.Interface().(intstr.IntOrString)
		if i.Type == intstr.Int {
			return w.number(s, strconv.Itoa(int(i.IntVal)))
		}
		return w.text(s, i.StrVal)
	}
	t := jsonTypeOf(v.Type())
	if t.marshals {
		return w.marshaled(s, v)
	}
	o := w.open(s)
	for i := range t.sorted {
		field := v.FieldByIndex(t.sorted[i].index)
		if unset(field) {
			continue
		}
		at := o.key(t.sorted[i].name)
		from := len(w.buf)
		written := w.typed(at, field)
		// A struct that sets nothing says nothing, where a pointer to it might.
		o.done(written && (field.Kind() != reflect.Struct || string(w.buf[from:]) != "{}"))
	}
	return o.close()
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
		// Other structs are taken apart anyway, and are empty.
		return v.Type() == intOrStringType && v.IsZero()
	}
	return v.IsZero()
}

func (w *canonicalWriter) typedList(s *node, v reflect.Value) bool {
	if v.Len() == 0 && s.kind == kindList {
		return false
	}
	elem := anything
	if s.kind == kindList {
		elem = s.elem
	}
	w.buf = append(w.buf, '[')
	for i := range v.Len() {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		if !w.typed(elem, v.Index(i)) {
			w.buf = append(w.buf, zeroOf[elem.kind]...)
		}
	}
	w.buf = append(w.buf, ']')
	return true
}

func (w *canonicalWriter) typedMap(s *node, v reflect.Value) bool {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	o := w.open(s)
	for _, key := range keys {
		o.done(w.typed(o.key(key.String()), v.MapIndex(key)))
	}
	return o.close()
}

// marshaled writes a value by its own JSON.
func (w *canonicalWriter) marshaled(s *node, v reflect.Value) bool {
	data, err := json.Marshal(v.Interface())
	var tree any
	if err == nil {
		err = json.Unmarshal(data, &tree)
	}
	if err != nil {
		w.fail("%w", err)
		return false
	}
	return w.member(s, tree)
}
