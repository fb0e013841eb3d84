package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/api"
)

// object is a JSON object whose members come in the order of their names.
type object = map[string]any

// openAPI writes the document of the HTTP API: its paths are those of the table of routes,
// and its schemas the types that the routes answer with.
func openAPI(out io.Writer) error {
	document, err := openAPIDocument()
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return err
	}
	_, err = out.Write(append(text, '\n'))
	return err
}

func openAPIDocument() (object, error) {
	s := &schemas{known: object{}, words: map[string]string{}}
	if err := s.read("api/v1", "plan/view", "plan/foresight", "crd/workload/v1beta1"); err != nil {
		return nil, err
	}
	paths := object{}
	for _, r := range api.Routes() {
		item, ok := paths[r.Path].(object)
		if !ok {
			item = object{}
			paths[r.Path] = item
		}
		item[strings.ToLower(r.Method)] = s.operation(r)
	}
	s.of(reflect.TypeFor[metav1.Status]())
	return object{
		"openapi": "3.0.3",
		"info": object{"title": "tapp api", "version": "v1", "license": object{"name": "Apache 2.0"},
			"description": "What TApps, Apps and AppSets do. Everything is read, and nothing is written. HEAD is answered wherever GET is."},
		"paths": paths,
		"components": object{"schemas": s.known, "securitySchemes": object{
			"bearer": object{"type": "http", "scheme": "bearer", "description": "A token of the cluster, such as one of `kubectl create token`."},
		}},
		"security": []any{object{"bearer": []any{}}},
	}, nil
}

// variable of a path.
var variable = regexp.MustCompile(`\{([a-z]+)\}`)

func (s *schemas) operation(r api.Route) object {
	parameters := []any{}
	for _, name := range variable.FindAllStringSubmatch(r.Path, -1) {
		parameters = append(parameters, object{"name": name[1], "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	for _, p := range r.Query {
		parameters = append(parameters, object{"name": p.Name, "in": "query", "description": p.Text, "schema": object{"type": p.Type}})
	}
	content := object{}
	if r.Plain {
		content["text/plain"] = object{"schema": object{"type": "string"}}
	} else {
		content["application/json"] = object{"schema": s.of(reflect.TypeOf(r.Answer))}
	}
	if r.Stream {
		content["text/event-stream"] = object{"schema": object{"type": "string", "description": "Events list, change, object, health and error."}}
	}
	failure := object{"application/json": object{"schema": object{"$ref": "#/components/schemas/Status"}}}
	out := object{
		"operationId": r.ID, "summary": r.Summary, "description": "Rights: " + r.Rights + ".", "parameters": parameters,
		"responses": object{"200": object{"description": "The answer.", "content": content}, "default": object{"description": "An error, as Kubernetes tells it.", "content": failure}},
	}
	if r.Body != nil {
		out["requestBody"] = object{"required": true, "description": "A manifest.", "content": object{
			"application/yaml": object{"schema": object{"type": "object"}}, "application/json": object{"schema": object{"type": "object"}}}}
	}
	if r.Open {
		out["security"] = []any{}
	}
	return out
}

// schemas of Go types, with what their comments say.
type schemas struct {
	known object
	words map[string]string // of <package>.<Type> and <package>.<Type>.<Field>
}

// read the comments of packages of this module.
func (s *schemas) read(dirs ...string) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		entries, err := fs.ReadDir(os.DirFS(root), dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if filepath.Ext(e.Name()) != ".go" || strings.HasSuffix(e.Name(), "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, dir, e.Name()), nil, parser.ParseComments)
			if err != nil {
				return err
			}
			s.note("tkestack.io/tapp/"+dir, file)
		}
	}
	return nil
}

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("there is no go.mod above %s", dir)
		}
		dir = filepath.Dir(dir)
	}
}

func (s *schemas) note(pkg string, file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		decl, ok := n.(*ast.GenDecl)
		if !ok {
			return true
		}
		for _, spec := range decl.Specs {
			t, ok := spec.(*ast.TypeSpec)
			if !ok {
				continue
			}
			s.words[pkg+"."+t.Name.Name] = plainText(decl.Doc)
			if fields, ok := t.Type.(*ast.StructType); ok {
				last := ""
				for _, f := range fields.Fields.List {
					text := plainText(f.Doc)
					if text == "" {
						text = last // a comment is about the fields that follow, too
					}
					last = text
					for _, name := range f.Names {
						s.words[pkg+"."+t.Name.Name+"."+name.Name] = text
					}
				}
			}
		}
		return true
	})
}

// plainText of a comment, without markers.
func plainText(group *ast.CommentGroup) string {
	if group == nil {
		return ""
	}
	var out []string
	for _, line := range strings.Split(group.Text(), "\n") {
		if !strings.HasPrefix(line, "+") {
			out = append(out, line)
		}
	}
	return strings.TrimSpace(strings.Join(strings.Fields(strings.Join(out, " ")), " "))
}

// of a type: a reference where it has a name.
func (s *schemas) of(t reflect.Type) object {
	switch t {
	case nil:
		return object{"type": "object"}
	case reflect.TypeFor[metav1.Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[json.RawMessage]():
		return object{}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.Slice:
		return object{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Struct:
		name := nameOf(t)
		if s.known[name] == nil {
			s.known[name] = object{} // it may contain itself
			s.known[name] = s.structure(t)
		}
		return object{"$ref": "#/components/schemas/" + name}
	default:
		return object{}
	}
}

// argument of a generic type.
var argument = regexp.MustCompile(`^(\w+)\[.*\.(\w+)\]$`)

func nameOf(t reflect.Type) string {
	if m := argument.FindStringSubmatch(t.Name()); m != nil {
		return m[2] + m[1]
	}
	return t.Name()
}

func (s *schemas) structure(t reflect.Type) object {
	properties, required := object{}, []any{}
	s.fields(t, properties, &required)
	out := object{"type": "object", "properties": properties}
	name, _, _ := strings.Cut(t.Name(), "[")
	if text := s.words[t.PkgPath()+"."+name]; text != "" {
		out["description"] = text
	}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

// fields of a struct, and of those that are embedded in it.
func (s *schemas) fields(t reflect.Type, properties object, required *[]any) {
	owner, _, _ := strings.Cut(t.Name(), "[")
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			s.fields(f.Type, properties, required)
			continue
		case !f.IsExported() || name == "-":
			continue
		}
		schema := s.of(f.Type)
		if text := s.words[t.PkgPath()+"."+owner+"."+f.Name]; text != "" {
			if schema["$ref"] != nil {
				schema = object{"allOf": []any{schema}}
			}
			schema["description"] = text
		}
		properties[name] = schema
		if !strings.Contains(options, "omitempty") && !slices.Contains(*required, any(name)) {
			*required = append(*required, name)
		}
	}
}
