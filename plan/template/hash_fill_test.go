package template

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// filled returns a template in which every field that the Kubernetes types know
// is set, and the leaves by path.
func filled() (*corev1.PodTemplateSpec, map[string]reflect.Value) {
	f := filler{leaves: map[string]reflect.Value{}}
	t := &corev1.PodTemplateSpec{}
	f.fill("", reflect.ValueOf(t).Elem())
	return t, f.leaves
}

type filler struct {
	next   int
	leaves map[string]reflect.Value
}

func (f *filler) fill(path string, v reflect.Value) {
	f.next++
	switch v.Interface().(type) {
	case resource.Quantity:
		v.Set(reflect.ValueOf(resource.MustParse(fmt.Sprint(f.next))))
	case intstr.IntOrString:
		v.Set(reflect.ValueOf(intstr.FromInt(f.next)))
	case metav1.Time:
		v.Set(reflect.ValueOf(metav1.NewTime(time.Unix(int64(f.next)*86400, 0).UTC())))
	case metav1.FieldsV1:
		v.Set(reflect.ValueOf(*metav1.NewFieldsV1(`{"f:x":{}}`)))
	default:
		f.fillKind(path, v)
		return
	}
	f.leaves[path] = v
}

func (f *filler) fillKind(path string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(path, v.Elem())
	case reflect.Struct:
		for _, field := range jsonFields(v.Type()) {
			f.fill(path+"."+field.name, v.FieldByIndex(field.index))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		f.fill(path+"[0]", v.Index(0))
	case reflect.Map:
		element := reflect.New(v.Type().Elem()).Elem()
		f.fill(path+"[key]", element)
		delete(f.leaves, path+"[key]") // elements of maps cannot be set through a Value
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key").Convert(v.Type().Key()), element)
		f.leaves[path] = v
	case reflect.String:
		v.SetString(fmt.Sprintf("text%d", f.next))
		f.leaves[path] = v
	case reflect.Bool:
		v.SetBool(true)
		f.leaves[path] = v
	case reflect.Int32, reflect.Int64:
		v.SetInt(int64(f.next))
		f.leaves[path] = v
	default:
		panic(path + ": " + v.Type().String())
	}
}

// another value than the one that the leaf has.
func another(v reflect.Value) reflect.Value {
	switch old := v.Interface().(type) {
	case resource.Quantity:
		old = old.DeepCopy()
		old.Add(resource.MustParse("1n"))
		return reflect.ValueOf(old)
	case intstr.IntOrString:
		return reflect.ValueOf(intstr.FromString(fmt.Sprint(old.IntVal)))
	case metav1.Time:
		return reflect.ValueOf(metav1.NewTime(old.Add(time.Second)))
	case metav1.FieldsV1:
		return reflect.ValueOf(*metav1.NewFieldsV1(`{"f:y":{}}`))
	}
	n := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.String:
		n.SetString(v.String() + "x")
	case reflect.Bool:
		n.SetBool(!v.Bool())
	case reflect.Int32, reflect.Int64:
		n.SetInt(v.Int() + 1)
	case reflect.Map:
		n.Set(reflect.MakeMap(v.Type()))
		for _, key := range v.MapKeys() {
			n.SetMapIndex(key, another(v.MapIndex(key)))
		}
	}
	return n
}

// TestEveryFieldCounts: any change of any field changes the template hash, and
// the uniq hash too unless it can be made in place.
func TestEveryFieldCounts(t *testing.T) {
	template, leaves := filled()
	base := mustHash(t, template)
	if len(leaves) < 500 {
		t.Fatalf("only %d leaves", len(leaves))
	}
	for path, v := range leaves {
		old := reflect.New(v.Type()).Elem()
		old.Set(v)
		for _, value := range []reflect.Value{another(v), reflect.Zero(v.Type())} {
			v.Set(value)
			changed := mustHash(t, template)
			if changed.Template == base.Template {
				t.Errorf("%s = %v does not change the template hash", path, value)
			}
			inPlace := strings.HasPrefix(path, ".metadata.") || path == ".spec.containers[0].image" || path == ".spec.initContainers[0].image"
			if (changed.Uniq == base.Uniq) != inPlace {
				t.Errorf("%s = %v: the uniq hash changed: %t, can be made in place: %t", path, value, changed.Uniq != base.Uniq, inPlace)
			}
		}
		v.Set(old)
	}
	if mustHash(t, template) != base {
		t.Error("the hash is not the same again")
	}
}

// TestSchemaFitsTheTypes: where the frozen schema and the Kubernetes types name
// the same field, they agree. Fields that are newer than the schema are fine.
func TestSchemaFitsTheTypes(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var visit func(t reflect.Type)
	erased := map[string]bool{}
	visit = func(typ reflect.Type) {
		if seen[typ] {
			return
		}
		seen[typ] = true
		for _, f := range jsonFields(typ) {
			s, ok := schema()[typ.Name()][f.name]
			field := typ.FieldByIndex(f.index).Type
			if !ok {
				t.Logf("newer than the schema: %s.%s", typ.Name(), f.name)
				continue
			}
			if pointer := field.Kind() == reflect.Pointer; pointer != s.keepEmpty && s != anything {
				if !pointer {
					t.Errorf("%s.%s is no pointer: its empty value cannot be told from absent", typ.Name(), f.name)
				}
				erased[typ.Name()+"."+f.name] = true
			}
			checkKind(t, typ.Name()+"."+f.name, field, s, visit)
		}
	}
	visit(reflect.TypeFor[corev1.PodTemplateSpec]())
	if len(erased) != 12 {
		t.Errorf("pointers whose empty value counts as absent: %v", erased)
	}
}

func checkKind(t *testing.T, path string, typ reflect.Type, s *node, visit func(reflect.Type)) {
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	want := map[reflect.Kind]kind{reflect.String: kindText, reflect.Bool: kindFlag, reflect.Int32: kindNumber, reflect.Int64: kindNumber,
		reflect.Slice: kindList, reflect.Map: kindMap, reflect.Struct: kindObject}[typ.Kind()]
	switch typ {
	case quantityType:
		want = kindQuantity
	case intOrStringType:
		want = kindNumberOrText
	case reflect.TypeFor[metav1.Time]():
		want = kindText
	case reflect.TypeFor[metav1.FieldsV1]():
		want = kindAny
	}
	if s.kind != want {
		t.Errorf("%s: kind %d, the schema says %d", path, want, s.kind)
		return
	}
	switch want {
	case kindList, kindMap:
		checkKind(t, path+"[]", typ.Elem(), s.elem, visit)
	case kindObject:
		if reflect.ValueOf(s.fields).Pointer() != reflect.ValueOf(schema()[typ.Name()]).Pointer() {
			t.Errorf("%s is a %s", path, typ.Name())
		}
		visit(typ)
	}
}

func mustHash(t testing.TB, template *corev1.PodTemplateSpec) Hashes {
	t.Helper()
	h, err := Hash(template)
	if err != nil {
		t.Fatal(err)
	}
	return h
}
