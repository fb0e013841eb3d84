package template

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

func text(t *rapid.T, v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func fieldsOf(s *node) []string { return slices.Sorted(maps.Keys(s.fields)) }

// drawObject of the schema with a few fields.
func drawObject(t *rapid.T, s *node) map[string]any {
	object := map[string]any{}
	for _, field := range rapid.SliceOfN(rapid.SampledFrom(fieldsOf(s)), 0, 4).Draw(t, "fields") {
		switch {
		case field == "managedFields" || field == "fieldsV1":
		case strings.HasSuffix(field, "Timestamp"):
			object[field] = "2020-01-02T03:04:05Z"
		default:
			object[field] = drawValue(t, s.field(field))
		}
	}
	return object
}

func drawValue(t *rapid.T, s *node) any {
	switch s.kind {
	case kindText:
		return rapid.SampledFrom([]string{"", "a", "b", "500m", "1", "null", "日本", "\"\\\n<"}).Draw(t, "text")
	case kindFlag:
		return rapid.Bool().Draw(t, "flag")
	case kindNumber:
		return rapid.Int64Range(-2, 1000).Draw(t, "number")
	case kindNumberOrText:
		if rapid.Bool().Draw(t, "is number") {
			return rapid.Int64Range(0, 100).Draw(t, "number")
		}
		return rapid.SampledFrom([]string{"", "80", "http"}).Draw(t, "text")
	case kindQuantity:
		return rapid.SampledFrom([]string{"0", "1", "500m", "1.5", "1Gi", "0.1Ki", "100n", "3E", "9Ei", "-2"}).Draw(t, "quantity")
	case kindObject:
		return drawObject(t, s)
	case kindList:
		list := []any{}
		for range rapid.IntRange(0, 2).Draw(t, "length") {
			list = append(list, drawValue(t, s.elem))
		}
		return list
	case kindMap:
		m := map[string]any{}
		for _, key := range rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 2).Draw(t, "keys") {
			m[key] = drawValue(t, s.elem)
		}
		return m
	}
	return "anything"
}

// respell says the same in another way.
func respell(t *rapid.T, s *node, v any) any {
	switch v := v.(type) {
	case string:
		if s.kind == kindQuantity {
			return respellQuantity(t, v)
		}
	case int64:
		if rapid.Bool().Draw(t, "as float") {
			return float64(v)
		}
		return json.Number(fmt.Sprintf("%d.0e0", v))
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = respell(t, s.elem, v[i])
		}
		return list
	case map[string]any:
		object := map[string]any{}
		for key, member := range v {
			if s.kind == kindMap {
				object[key] = respell(t, s.elem, member)
			} else {
				object[key] = respell(t, s.field(key), member)
			}
		}
		if s.kind == kindObject {
			addEmpties(t, s, object)
		}
		return object
	}
	return v
}

func respellQuantity(t *rapid.T, s string) any {
	q := resource.MustParse(s)
	if s == "9Ei" { // capped
		return "9223372036854775807"
	}
	switch rapid.IntRange(0, 3).Draw(t, "spelling") {
	case 0:
		return q.AsDec().String()
	case 1:
		if !strings.HasPrefix(s, "-") {
			return "+" + s
		}
	case 2:
		if s[0] != '-' {
			return "00" + s
		}
	}
	return json.Number(q.AsDec().String())
}

// addEmpties adds members that say nothing.
func addEmpties(t *rapid.T, s *node, object map[string]any) {
	for _, field := range rapid.SliceOfN(rapid.SampledFrom(fieldsOf(s)), 0, 3).Draw(t, "empties") {
		if _, ok := object[field]; ok {
			continue
		}
		object[field] = nil
		f := s.field(field)
		if f.keepEmpty && f.kind != kindList && f.kind != kindMap || rapid.Bool().Draw(t, "null") {
			continue
		}
		switch f.kind {
		case kindText:
			object[field] = ""
		case kindFlag:
			object[field] = false
		case kindNumber, kindNumberOrText:
			object[field] = int64(0)
		case kindQuantity:
			object[field] = "0m"
		case kindObject, kindMap:
			object[field] = map[string]any{}
		case kindList:
			object[field] = []any{}
		}
	}
}
