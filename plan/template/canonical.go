package template

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
)

// canonicalJSON renders an object of the named type of the schema so that all
// spellings of it give the same bytes, and nothing else does:
//
//   - members in the order of their keys' bytes, no white space;
//   - an absent member, null, an empty list and an empty map are the same. So are
//     the zero value of a field that is no pointer in the API, and an empty object
//     where the API says so (hash_v1.schema marks them);
//   - quantities by value: 500m = "0.5" = 0.5, and numbers too: 1 = 1.0 = 1e0;
//   - in lists and maps every element counts, and null is the element's zero value;
//   - of members that the schema does not name, everything counts but null;
//   - a value of another kind than the schema's stays as it is: it is invalid, and
//     not for a hash to judge.
//
// The rules, the schema and the rendering are ours and frozen, so that no release
// of Go, of the Kubernetes libraries or of this program changes a hash. That is
// why the Kubernetes types are no part of it: passing a template through them
// would drop `newField: false` from the day on that they know newField, and
// encoding/json's rendering is not promised either.
func canonicalJSON(typeName string, of source) ([]byte, error) {
	w := canonicalWriter{buf: make([]byte, 0, 4096)}
	w.root(schemaType(typeName), of)
	return w.buf, w.err
}

// source writes an object, or nothing and false when it is the same as absent.
type source func(*canonicalWriter, *node) bool

// fromTree writes JSON decoded into maps.
func fromTree(object map[string]any) source {
	return func(w *canonicalWriter, s *node) bool { return w.member(s, object) }
}

// fromTypes writes what a struct of the Kubernetes types sets; object points to it.
func fromTypes(object any) source {
	return func(w *canonicalWriter, s *node) bool { return w.typed(s, reflect.ValueOf(object).Elem()) }
}

// canonicalTemplate renders a pod template and, in the same pass, its spec without
// the images that an in-place update can change: rendering is what a hash costs.
func canonicalTemplate(of source) (whole, unique []byte, err error) {
	w := canonicalWriter{buf: make([]byte, 0, 4096)}
	root := schemaType("PodTemplateSpec")
	w.spec = root.field("spec")
	w.owners = [2]*node{w.spec.field("containers").elem, w.spec.field("initContainers").elem}
	w.root(root, of)
	unique = make([]byte, 0, len(w.buf))
	at := w.from
	for _, image := range w.images {
		unique, at = append(unique, w.buf[at:image.from]...), image.to
	}
	if unique = append(unique, w.buf[at:w.to]...); len(unique) == 0 {
		unique = append(unique, zeroOf[kindObject]...)
	}
	return w.buf, unique, w.err
}

type canonicalWriter struct {
	buf []byte
	err error

	// Of a pod template: the node of its spec and where that was written, the
	// shapes of what has an image, and where the images were written, as members
	// that can be cut out.
	spec *node
	extent
	owners [2]*node
	images []extent
}

// extent of what was written.
type extent struct{ from, to int }

func (w *canonicalWriter) root(s *node, of source) {
	if !of(w, s) {
		w.buf = append(w.buf, zeroOf[s.kind]...)
	}
}

// element writes a value that counts even when it is empty.
func (w *canonicalWriter) element(s *node, v any) {
	if !w.member(s, v) {
		w.buf = append(w.buf, zeroOf[s.kind]...)
	}
}

// zeroOf is how the empty value of a kind reads as an element.
var zeroOf = map[kind]string{
	kindAny: `null`, kindText: `""`, kindFlag: `false`, kindNumber: `0`, kindQuantity: `"0"`,
	kindNumberOrText: `0`, kindObject: `{}`, kindList: `[]`, kindMap: `{}`,
}

// member writes a value, or nothing and false when it is the same as absent.
func (w *canonicalWriter) member(s *node, v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case string:
		return w.text(s, v)
	case bool:
		if !v && s.kind == kindFlag && !s.keepEmpty {
			return false
		}
		w.buf = strconv.AppendBool(w.buf, v)
		return true
	case []any:
		return w.list(s, v)
	case map[string]any:
		return w.object(s, v)
	case int64:
		return w.number(s, strconv.FormatInt(v, 10))
	case int:
		return w.number(s, strconv.Itoa(v))
	case uint64:
		return w.number(s, strconv.FormatUint(v, 10))
	case float64:
		return w.number(s, strconv.FormatFloat(v, 'g', -1, 64))
	case json.Number:
		return w.number(s, v.String())
	}
	w.fail("a value of type %T is not JSON", v)
	return false
}

func (w *canonicalWriter) text(s *node, v string) bool {
	if s.kind == kindQuantity {
		if d, ok := parseQuantity(v); ok {
			return w.quantity(s, d)
		}
	}
	if v == "" && s.kind == kindText && !s.keepEmpty {
		return false
	}
	w.quote(v)
	return true
}

func (w *canonicalWriter) number(s *node, v string) bool {
	if s.kind == kindQuantity {
		if d, ok := parseQuantity(v); ok {
			return w.quantity(s, d)
		}
	}
	d, ok := parseNumber(v)
	if !ok {
		w.fail("%q is not a number", v)
		return false
	}
	if d.isZero() && (s.kind == kindNumber || s.kind == kindNumberOrText) && !s.keepEmpty {
		return false
	}
	w.buf = d.append(w.buf)
	return true
}

func (w *canonicalWriter) quantity(s *node, d decimal) bool {
	if d.isZero() && !s.keepEmpty {
		return false
	}
	w.buf = append(w.buf, '"')
	w.buf = d.append(w.buf)
	w.buf = append(w.buf, '"')
	return true
}

func (w *canonicalWriter) list(s *node, v []any) bool {
	if len(v) == 0 && s.kind == kindList {
		return false
	}
	elem := anything
	if s.kind == kindList {
		elem = s.elem
	}
	w.buf = append(w.buf, '[')
	for i, e := range v {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		w.element(elem, e)
	}
	w.buf = append(w.buf, ']')
	return true
}

func (w *canonicalWriter) object(s *node, v map[string]any) bool {
	var room [16]string // for most objects, without an allocation
	keys := room[:0]
	for key := range v {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	o := w.open(s)
	for _, key := range keys {
		o.done(w.member(o.key(key), v[key]))
	}
	return o.close()
}

// openObject is one whose members are being written, in the order of their keys.
type openObject struct {
	*canonicalWriter
	node *node
	// start of the object, and of the member that is written.
	start, at int
	name      string
	members   int
	// imageFirst: the first member is an image; the comma after it goes with it.
	imageFirst bool
}

func (w *canonicalWriter) open(s *node) openObject {
	o := openObject{canonicalWriter: w, node: s, start: len(w.buf)}
	w.buf = append(w.buf, '{')
	return o
}

// key begins a member, and returns the node of its value.
func (o *openObject) key(name string) *node {
	o.at, o.name = len(o.buf), name
	if o.members > 0 {
		o.buf = append(o.buf, ',')
	}
	o.quote(name)
	o.buf = append(o.buf, ':')
	if o.node.kind == kindMap {
		return o.node.elem
	}
	return o.node.field(name)
}

// done ends a member. Without a value it counts in a map, and nowhere else.
func (o *openObject) done(written bool) {
	if !written {
		if o.node.kind != kindMap {
			o.buf = o.buf[:o.at]
			return
		}
		o.buf = append(o.buf, zeroOf[o.node.elem.kind]...)
	}
	if o.imageFirst {
		o.images[len(o.images)-1].to++
		o.imageFirst = false
	}
	if o.name == "image" && (o.node == o.owners[0] || o.node == o.owners[1]) {
		o.images = append(o.images, extent{o.at, len(o.buf)})
		o.imageFirst = o.members == 0
	}
	o.members++
}

// close returns false when the object is the same as absent.
func (o *openObject) close() bool {
	if s := o.node; o.members == 0 && (s.kind == kindObject || s.kind == kindMap) && !s.keepEmpty {
		o.buf = o.buf[:o.start]
		return false
	}
	o.buf = append(o.buf, '}')
	if o.node == o.spec {
		o.extent = extent{o.start, len(o.buf)}
	}
	return true
}

// quote writes a JSON string in which only what JSON demands is escaped.
func (w *canonicalWriter) quote(s string) {
	const hex = "0123456789abcdef"
	w.buf = append(w.buf, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			w.buf = append(w.buf, '\\', c)
		case c < ' ':
			w.buf = append(w.buf, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			w.buf = append(w.buf, c)
		}
	}
	w.buf = append(w.buf, '"')
}

func (w *canonicalWriter) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}
