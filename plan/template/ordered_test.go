package template

import "testing"

func TestOrdered(t *testing.T) {
	type inner struct {
		Z int64             `json:"z"`
		A map[string]string `json:"a"`
	}
	raw, err := Ordered(struct {
		Later inner `json:"b"`
		First int64 `json:"a"`
	}{inner{9007199254740993, map[string]string{"y": "<", "x": ""}}, 1})
	const want = `{"a":1,"b":{"a":{"x":"","y":"\u003c"},"z":9007199254740993}}`
	if err != nil || string(raw) != want {
		t.Errorf("%s, %v, want %s", raw, err, want)
	}
	if _, err := Ordered(func() {}); err == nil {
		t.Error("a function has become JSON")
	}
}
