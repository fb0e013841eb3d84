package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// TestAPIRows: types, defaults and constraints are written as they are.
func TestAPIRows(t *testing.T) {
	s := &apiextensionsv1.JSONSchemaProps{Required: []string{"a"}, Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"a": {Type: "integer", Description: "a is\nthis | that.", Minimum: ptr.To(1.0), Default: &apiextensionsv1.JSON{Raw: []byte("1")}},
		"b": {XIntOrString: true, Description: "b. Absent or empty means 100%."},
		"c": {Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "string", Enum: []apiextensionsv1.JSON{{Raw: []byte(`"X"`)}, {Raw: []byte(`"Y"`)}}}}},
		"d": {Type: "array", MaxItems: ptr.To(int64(2)), XValidations: apiextensionsv1.ValidationRules{{Message: "d is so"}},
			Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{Type: "object",
				Properties: map[string]apiextensionsv1.JSONSchemaProps{"e": {Type: "string", Format: "date-time"}}}}},
	}}
	var got bytes.Buffer
	if err := writeFields(&got, "", s); err != nil {
		t.Fatal(err)
	}
	want := "| `a` | integer | 1 | a is this \\| that. | required; at least 1 |\n" +
		"| `b` | integer or percentage | 100% | b. Absent or empty means 100%. |  |\n" +
		"| `c` | map of string |  |  | one of `X`, `Y` |\n" +
		"| `d` | list of object |  |  | at most 2 entries; d is so |\n" +
		"| `d[*].e` | time |  |  |  |\n"
	if got.String() != want {
		t.Errorf("got\n%swant\n%s", got.String(), want)
	}
}

// TestAPIPage: `make generate` was run, and every field has a meaning.
func TestAPIPage(t *testing.T) {
	var got bytes.Buffer
	if err := apiPage(&got); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(got.String()) {
		if strings.HasPrefix(line, "| `") && !strings.HasPrefix(line, "| `metadata`") && strings.Split(line, " | ")[3] == "" {
			t.Errorf("no meaning: %s", line)
		}
	}
	page, err := os.ReadFile("../../docs/reference/api.md")
	if err != nil || !bytes.Equal(page, got.Bytes()) {
		t.Errorf("api.md is not up to date (%v): run `make generate`", err)
	}
}
