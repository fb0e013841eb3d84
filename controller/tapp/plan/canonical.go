package plan

import (
	"encoding/json"
	"fmt"
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
func canonicalJSON(typeName string, object map[string]any) ([]byte, error) {
	w := canonicalWriter{buf: make([]byte, 0, 2048)}
	w.element(schemaType(typeName), object)
	return w.buf, w.err
}

// canonicalTemplate renders a pod template and, in the same pass, its spec without
// the images that an in-place update can change: rendering is what a hash costs.
func canonicalTemplate(template map[string]any) (whole, unique []byte, err error) {
	w := canonicalWriter{buf: make([]byte, 0, 2048)}
	root := schemaType("PodTemplateSpec")
	w.spec = root.field("spec")
	w.owners = [2]*shape{w.spec.field("containers").elem, w.spec.field("initContainers").elem}
	w.element(root, template)
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

	// Of a pod template: the shape of its spec and where that was written, the
	// shapes of what has an image, and where the images were written, as members
	// that can be cut out.
	spec *shape
	extent
	owners [2]*shape
	images []extent
}

// extent of what was written.
type extent struct{ from, to int }

// element writes a value that counts even when it is empty.
func (w *canonicalWriter) element(s *shape, v any) {
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
func (w *canonicalWriter) member(s *shape, v any) bool {
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

func (w *canonicalWriter) text(s *shape, v string) bool {
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

func (w *canonicalWriter) number(s *shape, v string) bool {
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

func (w *canonicalWriter) quantity(s *shape, d decimal) bool {
	if d.isZero() && !s.keepEmpty {
		return false
	}
	w.buf = append(w.buf, '"')
	w.buf = d.append(w.buf)
	w.buf = append(w.buf, '"')
	return true
}

func (w *canonicalWriter) list(s *shape, v []any) bool {
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

func (w *canonicalWriter) object(s *shape, v map[string]any) bool {
	start := len(w.buf)
	w.buf = append(w.buf, '{')
	written, first := 0, false
	var room [16]string // for most objects, without an allocation
	keys := room[:0]
	for key := range v {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		before := len(w.buf)
		if written > 0 {
			w.buf = append(w.buf, ',')
		}
		w.quote(key)
		w.buf = append(w.buf, ':')
		if s.kind == kindMap {
			w.element(s.elem, v[key])
		} else if !w.member(s.field(key), v[key]) {
			w.buf = w.buf[:before]
			continue
		}
		if first { // the comma after an image that was the first member
			w.images[len(w.images)-1].to++
			first = false
		}
		if key == "image" && (s == w.owners[0] || s == w.owners[1]) {
			w.images = append(w.images, extent{before, len(w.buf)})
			first = written == 0
		}
		written++
	}
	if written == 0 && (s.kind == kindObject || s.kind == kindMap) && !s.keepEmpty {
		w.buf = w.buf[:start]
		return false
	}
	w.buf = append(w.buf, '}')
	if s == w.spec {
		w.extent = extent{start, len(w.buf)}
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
