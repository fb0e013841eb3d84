package tapp

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// tree is JSON decoded into maps, and the edits that were made to it as a JSON
// patch (RFC 6902). The object itself is never rendered again: fields that our Go
// types do not know stay, and so does the spelling of numbers. Each edit is recorded
// where it is made, so that the patch is as small as possible.
type tree struct {
	root  map[string]any
	at    string // where root is in the object, as a JSON pointer
	patch []edit
}

// edit is an operation of a JSON patch: add or remove.
type edit struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value,omitempty"`
}

// get returns the value at a path, or nil: absent and null are the same.
func (t *tree) get(path ...string) any {
	var node any = t.root
	for _, key := range path {
		m, ok := node.(map[string]any)
		if !ok {
			return nil
		}
		node = m[key]
	}
	return node
}

// text returns the string at a path, or "".
func (t *tree) text(path ...string) string {
	s, _ := t.get(path...).(string)
	return s
}

// object returns the object at a path, or nil.
func (t *tree) object(path ...string) map[string]any {
	m, _ := t.get(path...).(map[string]any)
	return m
}

// set puts a value at a path, and creates the objects that lead to it. A parent that
// is no object stays as it is: the schema rejects it.
func (t *tree) set(value any, path ...string) error {
	node := t.root
	for i, key := range path[:len(path)-1] {
		switch child := node[key].(type) {
		case map[string]any:
			node = child
		case nil:
			for k := len(path) - 1; k > i; k-- {
				value = map[string]any{path[k]: value}
			}
			return t.add(node, value, path[:i+1])
		default:
			return nil
		}
	}
	if reflect.DeepEqual(node[path[len(path)-1]], value) {
		return nil
	}
	return t.add(node, value, path)
}

// setDefault sets a value where there is none, or an empty string.
func (t *tree) setDefault(value any, path ...string) error {
	if has := t.get(path...); has != nil && has != "" {
		return nil
	}
	return t.set(value, path...)
}

func (t *tree) add(node map[string]any, value any, path []string) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("render %s: %w", t.pointer(path), err)
	}
	node[path[len(path)-1]] = value
	t.patch = append(t.patch, edit{Op: "add", Path: t.pointer(path), Value: text})
	return nil
}

// remove deletes the value at a path, if there is one.
func (t *tree) remove(path ...string) {
	node := t.object(path[:len(path)-1]...)
	last := path[len(path)-1]
	if _, ok := node[last]; !ok {
		return
	}
	delete(node, last)
	t.patch = append(t.patch, edit{Op: "remove", Path: t.pointer(path)})
}

// pointer to a path as a JSON pointer (RFC 6901).
func (t *tree) pointer(path []string) string {
	var b strings.Builder
	b.WriteString(t.at)
	for _, key := range path {
		b.WriteByte('/')
		if strings.ContainsAny(key, "~/") {
			key = strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
		}
		b.WriteString(key)
	}
	return b.String()
}
