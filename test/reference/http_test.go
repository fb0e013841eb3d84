package main

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"tkestack.io/tapp/api"
)

// TestHTTP: `make generate` was run; each route has an example, and each example a route.
func TestHTTP(t *testing.T) {
	for path, write := range map[string]func(*bytes.Buffer) error{
		"../../api/openapi.json": func(b *bytes.Buffer) error { return openAPI(b) },
		"../../docs/api.md":      func(b *bytes.Buffer) error { return httpPage(b) },
	} {
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if err := write(&got); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%s is not up to date: run make generate", path)
		}
	}
	routes := map[string]bool{}
	for _, r := range api.Routes() {
		routes[r.ID] = true
	}
	for id := range httpExamples() {
		if !routes[id] {
			t.Errorf("there is no route %s", id)
		}
	}
}

// TestMembersHaveMeanings: the document says what each member of our own types means.
func TestMembersHaveMeanings(t *testing.T) {
	document, err := openAPIDocument()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	var read struct {
		Components struct {
			Schemas map[string]struct {
				Description string
				Properties  map[string]struct{ Description string }
			}
		}
	}
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	if len(read.Components.Schemas) < 20 {
		t.Errorf("there are %d schemas", len(read.Components.Schemas))
	}
	for name, s := range read.Components.Schemas {
		switch name {
		case "Status", "ListMeta", "StatusDetails", "StatusCause", "Condition", "ShardInfo": // Kubernetes' own
			continue
		}
		if s.Description == "" {
			t.Errorf("%s has no description", name)
		}
	}
}
