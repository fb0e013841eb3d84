package template

import (
	_ "embed"
	"strings"
	"sync"
)

// schemaText is the frozen schema of the hash scheme v1. TestSchemaFitsTheTypes
// holds it against the Kubernetes types.
//
//go:embed hash_v1.schema
var schemaText string

// kind of a value in the schema.
type kind byte

const (
	kindAny kind = iota
	kindText
	kindFlag
	kindNumber
	kindQuantity
	kindNumberOrText
	kindObject
	kindList
	kindMap
)

// node of the schema says what a value should look like.
type node struct {
	kind kind
	// keepEmpty: the zero or empty value has a meaning of its own.
	keepEmpty bool
	// fields of an object.
	fields map[string]*node
	// elem of a list or map.
	elem *node
}

// anything is the node of what the schema does not know.
var anything = &node{}

// field of an object; what the schema does not name may be anything.
func (s *node) field(name string) *node {
	if f, ok := s.fields[name]; ok {
		return f
	}
	return anything
}

func schemaType(name string) *node {
	return &node{kind: kindObject, fields: schema()[name]}
}

// schema is the fields of each type by name.
var schema = sync.OnceValue(func() map[string]map[string]*node {
	types := map[string]map[string]*node{}
	lines := strings.Split(schemaText, "\n")
	for _, line := range lines {
		if name, _, ok := strings.Cut(line, " "); ok && name != "#" {
			types[name] = map[string]*node{}
		}
	}
	for _, line := range lines {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, fields, _ := strings.Cut(line, " ")
		for field := range strings.FieldsSeq(fields) {
			key, code, _ := strings.Cut(field, ":")
			types[name][key] = nodeOf(code, types)
		}
	}
	return types
})

func nodeOf(code string, types map[string]map[string]*node) *node {
	switch code {
	case "?":
		return anything
	case "s":
		return &node{kind: kindText}
	case "b":
		return &node{kind: kindFlag}
	case "n":
		return &node{kind: kindNumber}
	case "q":
		return &node{kind: kindQuantity}
	case "i":
		return &node{kind: kindNumberOrText}
	}
	switch code[0] {
	case '*':
		s := nodeOf(code[1:], types)
		s.keepEmpty = true
		return s
	case '~':
		return nodeOf(code[1:], types)
	case '[':
		return &node{kind: kindList, elem: nodeOf(code[1:], types)}
	case '{':
		return &node{kind: kindMap, elem: nodeOf(code[1:], types)}
	}
	return &node{kind: kindObject, fields: types[code]}
}
