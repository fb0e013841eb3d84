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

// shape says what a value should look like.
type shape struct {
	kind kind
	// keepEmpty: the zero or empty value has a meaning of its own.
	keepEmpty bool
	// fields of an object.
	fields map[string]*shape
	// elem of a list or map.
	elem *shape
}

// anything is the shape of what the schema does not know.
var anything = &shape{}

// field of an object; what the schema does not name may be anything.
func (s *shape) field(name string) *shape {
	if f, ok := s.fields[name]; ok {
		return f
	}
	return anything
}

func schemaType(name string) *shape {
	return &shape{kind: kindObject, fields: schema()[name]}
}

// schema is the fields of each type by name.
var schema = sync.OnceValue(func() map[string]map[string]*shape {
	types := map[string]map[string]*shape{}
	lines := strings.Split(schemaText, "\n")
	for _, line := range lines {
		if name, _, ok := strings.Cut(line, " "); ok && name != "#" {
			types[name] = map[string]*shape{}
		}
	}
	for _, line := range lines {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, fields, _ := strings.Cut(line, " ")
		for field := range strings.FieldsSeq(fields) {
			key, code, _ := strings.Cut(field, ":")
			types[name][key] = shapeOf(code, types)
		}
	}
	return types
})

func shapeOf(code string, types map[string]map[string]*shape) *shape {
	switch code {
	case "?":
		return anything
	case "s":
		return &shape{kind: kindText}
	case "b":
		return &shape{kind: kindFlag}
	case "n":
		return &shape{kind: kindNumber}
	case "q":
		return &shape{kind: kindQuantity}
	case "i":
		return &shape{kind: kindNumberOrText}
	}
	switch code[0] {
	case '*':
		s := shapeOf(code[1:], types)
		s.keepEmpty = true
		return s
	case '~':
		return shapeOf(code[1:], types)
	case '[':
		return &shape{kind: kindList, elem: shapeOf(code[1:], types)}
	case '{':
		return &shape{kind: kindMap, elem: shapeOf(code[1:], types)}
	}
	return &shape{kind: kindObject, fields: types[code]}
}
