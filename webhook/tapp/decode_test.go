package tapp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/webhook/review"
)

// TestCut: the pieces of a review, as "rest now was".
func TestCut(t *testing.T) {
	const odd = "odd"
	for _, c := range []struct{ text, want string }{
		{`{"request":{"object":{"spec":{"templatePool":{"a":{"x":[1]},"b":2 }}},"oldObject":{"spec":{"templatePool":{"a":"}"}}}}}`,
			`{"request":{"object":{"spec":{"templatePool":{"a":null,"b":null}}},"oldObject":{"spec":{"templatePool":{"a":null}}}}} map[a:{"x":[1]} b:2 ] map[a:"}"]`},
		{" {\"kind\" : \"x\",\n\"request\":{\"uid\":\"\\\"}\\\\\",\"object\":{\"status\":{\"spec\":{}},\"spec\":{\"replicas\":1,\t\"templatePool\" : { \"a\" :\r{} } } } } } ",
			" {\"kind\" : \"x\",\n\"request\":{\"uid\":\"\\\"}\\\\\",\"object\":{\"status\":{\"spec\":{}},\"spec\":{\"replicas\":1,\t\"templatePool\" : { \"a\" :\rnull } } } } }  map[a:{}] map[]"},
		{`{"request":{"object":{"metadata":{"name":"x","managedFields":[{}]},"spec":{}},"oldObject":{"metadata":{"managedFields":[]}}}}`,
			`{"request":{"object":{"metadata":{"name":"x","managedFields":null},"spec":{}},"oldObject":{"metadata":{"managedFields":null}}}} map[] map[]`},
		// What is not JSON before is not JSON after.
		{`{"request":{"object":{"spec":{"templatePool":{"a":{]},}}}}}`, `{"request":{"object":{"spec":{"templatePool":{"a":null},}}}}} map[a:{]] map[]`},
		{`{"request":{"object":{"spec":{"templatePool":{"a":{}7}}}}}`, odd},
		{`{"request":{"object":{"spec":{"templatePool":{"a":"}}}}}`, odd},
		{`{"request":{"object":{"spec":{"templatePool":{"a":{}`, odd},
		{`{"request":{"object":{"spec":{"templatePool":{"a`, odd},
		{`{"request":{"object":{"spec":{"templatePool":{"a"`, odd},
		{`{"request":{"object":{"spec":{"templatePool":{"a":`, odd},
		{`{"request":{"object":{"spec":{"templatePool":{"a" {}}}}}}`, odd},
		// There is nothing to cut.
		{``, odd}, {`7`, odd}, {`{}`, odd}, {`{"request":null}`, odd}, {`{"request":{"object":[]}}`, odd},
		{`{"request":{"object":{"spec":{"templatePool":{}}}}}`, odd},
		{`{"Request":{"object":{"spec":{"templatePool":{"a":{}}}}}}`, odd},
		{`{"object":{"spec":{"templatePool":{"a":{}}}}}`, odd},
		// Keys that only a decoder should judge.
		{`{"request":{"object":{"spec":{"templatePool":{"a":{},"a":{}}}}}}`, odd},
		{`{"request":{"object":{"spec":{"templatePool":{"\u0061":{}}}}}}`, odd},
		{"{\"request\":{\"object\":{\"spec\":{\"templatePool\":{\"\xff\":{}}}}}}", odd},
		{`{"request":{"object":{"spec":{"templatePool":{"a":{}}}},"object":{}}}`, odd},
	} {
		p, ok := cut([]byte(c.text))
		got := odd
		if ok {
			got = fmt.Sprintf("%s %s %s", p.rest, p.now, p.was)
		}
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.text, got, c.want)
		}
	}
}

// sameDecoded compares what is decoded in pieces with what is decoded as a whole,
// but for metadata.managedFields.
func sameDecoded(t testingTB, body []byte) {
	t.Helper()
	tapps, err := DecodeTApps(body)
	wantTApps, wantErr := review.Decode[*tappv1.TApp](body)
	if err == nil && wantErr != nil && bytes.Contains(body, []byte("managedFields")) {
		return // which are at fault, and were not looked at
	}
	if wantErr == nil {
		for _, o := range []*tappv1.TApp{wantTApps.Object, wantTApps.OldObject, tapps.Object, tapps.OldObject} {
			if o != nil {
				o.ManagedFields = nil
			}
		}
	}
	if fmt.Sprint(err) != fmt.Sprint(wantErr) || !reflect.DeepEqual(tapps, wantTApps) {
		t.Fatalf("got %+v, %v\nwant %+v, %v\nof %s", tapps, err, wantTApps, wantErr, body)
	}
	trees, err := DecodeTrees(body)
	wantTrees, wantErr := review.Decode[map[string]any](body)
	if err == nil && wantErr != nil {
		if bytes.Contains(body, []byte("managedFields")) {
			return
		}
		for _, text := range mustCut(t, body).was { // to which the first difference made it blind
			if !json.Valid(text) {
				return
			}
		}
	}
	if fmt.Sprint(err) != fmt.Sprint(wantErr) {
		t.Fatalf("got %v\nwant %v\nof %s", err, wantErr, body)
	}
	if err != nil {
		return
	}
	spec := func(object map[string]any) map[string]any { return (&tree{root: object}).object("spec") }
	if got, want := reflect.DeepEqual(spec(trees.Object), spec(trees.OldObject)), reflect.DeepEqual(spec(wantTrees.Object), spec(wantTrees.OldObject)); got != want {
		t.Fatalf("the specs are the same: %v, want %v, of %s", got, want, body)
	}
	for _, r := range []*review.Request[map[string]any]{trees, wantTrees} {
		if pool := (&tree{root: r.OldObject}).object("spec", fieldPool); pool != nil {
			clear(pool) // it was only compared
		}
		for _, o := range []map[string]any{r.Object, r.OldObject} {
			if metadata := (&tree{root: o}).object("metadata"); metadata != nil {
				delete(metadata, "managedFields")
			}
		}
	}
	if !reflect.DeepEqual(trees, wantTrees) {
		t.Fatalf("got %+v\nwant %+v\nof %s", trees, wantTrees, body)
	}
}

func mustCut(t testingTB, body []byte) pieces {
	t.Helper()
	p, ok := cut(body)
	if !ok {
		t.Fatalf("not cut: %s", body)
	}
	return p
}

// TestDecodeInPieces: an update is the same in pieces as it is as a whole, whatever
// templates both objects have in common.
func TestDecodeInPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now, was := drawObject(t), drawObject(t)
		pool := func(object jsonMap) jsonMap { p, _ := object["spec"].(jsonMap)["templatePool"].(jsonMap); return p }
		for _, name := range []string{"canary", "blue"} {
			if pool(now) != nil && pool(was) != nil && rapid.Bool().Draw(t, name+" stays") {
				pool(now)[name] = pool(was)[name]
			}
		}
		if rapid.Bool().Draw(t, "all stays") {
			spec := maps.Clone(was["spec"].(jsonMap))
			if now["spec"] = spec; pool(now) != nil && rapid.Bool().Draw(t, "but one template") {
				spec["templatePool"] = maps.Clone(pool(now))
				pool(now)["canary"] = drawTemplate(t)
			}
		}
		if rapid.Bool().Draw(t, "managed") {
			now["metadata"].(jsonMap)["managedFields"] = []any{jsonMap{"manager": "kubectl", "fieldsV1": jsonMap{"f:spec": jsonMap{}}}}
		}
		sameDecoded(t, reviewOf(t, requestFor(render(t, now), render(t, was))))
	})
}

// TestSpelledInAnotherWay: an update that only spells a template in another way
// leaves the spec alone, and one with the same text shares the template.
func TestSpelledInAnotherWay(t *testing.T) {
	old := reviewOf(t, requestFor(object(t, ""), object(t, "")))
	tapps, err := DecodeTApps(old)
	if err != nil || &tapps.Object.Spec.TemplatePool["canary"].Spec.Containers[0] != &tapps.OldObject.Spec.TemplatePool["canary"].Spec.Containers[0] {
		t.Errorf("the template was decoded twice, %v", err)
	}
	spelled := []byte(strings.Replace(string(old), `"image":"web:2","name":"web"`, `"name":"web", "image":"web\u003a2"`, 1))
	sameDecoded(t, spelled)
	trees, err := DecodeTrees(spelled)
	if err != nil || string(spelled) == string(old) || !reflect.DeepEqual(trees.Object, trees.OldObject) {
		t.Errorf("%v and %v, %v", trees.Object, trees.OldObject, err)
	}
}

// FuzzDecode: whatever comes in is the same in pieces as it is as a whole.
func FuzzDecode(f *testing.F) {
	f.Add(reviewOf(f, requestFor(object(f, "replicas: 5"), object(f, ""))))
	f.Add([]byte(strings.Replace(string(reviewOf(f, requestFor(object(f, ""), object(f, "")))), `"namespace":"shop",`, `"managedFields":[{"manager":"kubectl"}],`, 2)))
	f.Add(reviewOf(f, requestFor(object(f, "templatePool: {canary: null, blue: [], green: {spec: {}}}"), object(f, ""))))
	f.Fuzz(func(t *testing.T, body []byte) { sameDecoded(t, body) })
}
