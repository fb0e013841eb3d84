package template

import (
	"encoding/json"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// TestCanonicalJSON shows the form that is hashed.
func TestCanonicalJSON(t *testing.T) {
	for name, test := range map[string]struct{ in, want string }{
		"nothing":            {`{}`, `{}`},
		"keys in order":      {`{"spec":{"nodeName":"n","hostname":"h"},"metadata":{"name":"x"}}`, `{"metadata":{"name":"x"},"spec":{"hostname":"h","nodeName":"n"}}`},
		"quantities":         {`{"spec":{"overhead":{"a":"500m","b":"0.50","c":1.5,"d":"1Gi","e":0,"f":null}}}`, `{"spec":{"overhead":{"a":"0.5","b":"0.5","c":"1.5","d":"1073741824","e":"0","f":"0"}}}`},
		"no quantity":        {`{"spec":{"overhead":{"a":"lots","b":[],"c":true}}}`, `{"spec":{"overhead":{"a":"lots","b":[],"c":true}}}`},
		"zero values":        {`{"spec":{"nodeName":"","hostNetwork":false,"containers":[{"ports":[{"hostPort":0}]}]}}`, `{"spec":{"containers":[{"ports":[{}]}]}}`},
		"zero that counts":   {`{"spec":{"priority":0,"hostUsers":false,"runtimeClassName":""}}`, `{"spec":{"hostUsers":false,"priority":0,"runtimeClassName":""}}`},
		"empty":              {`{"spec":{"securityContext":{},"volumes":[{"name":"v","emptyDir":{}}],"tolerations":[],"nodeSelector":{}}}`, `{"spec":{"volumes":[{"name":"v"}]}}`},
		"empty that counts":  {`{"spec":{"volumes":[{"name":"v","downwardAPI":{}}],"tolerations":[{}],"nodeSelector":{"a":""}}}`, `{"spec":{"nodeSelector":{"a":""},"tolerations":[{}],"volumes":[{"downwardAPI":{},"name":"v"}]}}`},
		"elements that null": {`{"spec":{"nodeSelector":{"a":null},"tolerations":[null],"containers":[{"command":[null,"x"]}]}}`, `{"spec":{"containers":[{"command":["","x"]}],"nodeSelector":{"a":""},"tolerations":[{}]}}`},
		"unknown":            {`{"new":{"a":null,"b":{},"c":[],"d":"","e":0,"f":false,"g":[null]}}`, `{"new":{"b":{},"c":[],"d":"","e":0,"f":false,"g":[null]}}`},
		"numbers":            {`{"new":[1.0,1e2,-0,0.001,1e40,-1.50e-30,100000000000000000000]}`, `{"new":[1,100,0,0.001,1e40,-15e-31,100000000000000000000]}`},
		"number or text":     {`{"spec":{"containers":[{"livenessProbe":{"httpGet":{"port":80}}},{"livenessProbe":{"httpGet":{"port":"80"}}},{"livenessProbe":{"httpGet":{"port":0}}}]}}`, `{"spec":{"containers":[{"livenessProbe":{"httpGet":{"port":80}}},{"livenessProbe":{"httpGet":{"port":"80"}}},{"livenessProbe":{"httpGet":{}}}]}}`},
		"text":               {`{"new":"\"\\\/<&>\u0001\n\u2028é"}`, `{"new":"\"\\/<&>\u0001\u000a` + "\u2028é" + `"}`},
		"wrong kinds":        {`{"spec":{"nodeName":3,"hostNetwork":"no","containers":{"a":1},"priority":"high"}}`, `{"spec":{"containers":{"a":1},"hostNetwork":"no","nodeName":3,"priority":"high"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := canonicalJSON("PodTemplateSpec", fromTree(decodeTree(t, []byte(test.in))))
			if err != nil || string(got) != test.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, test.want)
			}
		})
	}
	if _, err := HashRaw(map[string]any{"a": make(chan int)}); err == nil {
		t.Error("a channel has a hash")
	}
}

// TestNewerTypes: of fields that are newer than the schema, a struct that sets
// nothing says nothing, and a pointer to one does.
func TestNewerTypes(t *testing.T) {
	type inner struct {
		A string `json:"a"`
	}
	type spec struct {
		Value   inner  `json:"newValue"`
		Pointer *inner `json:"newPointer"`
		Text    string `json:"newText"`
	}
	for want, given := range map[string]spec{
		`{}`: {}, `{"newPointer":{}}`: {Pointer: &inner{}}, `{"newText":"x","newValue":{"a":"y"}}`: {Text: "x", Value: inner{"y"}},
	} {
		if got, err := canonicalJSON("PodSpec", fromTypes(&given)); err != nil || string(got) != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
}

// TestSpellings: templates that the API takes for one and the same hash alike,
// and others do not.
func TestSpellings(t *testing.T) {
	same := func(a, b string) {
		t.Helper()
		if hashText(t, a) != hashText(t, b) {
			t.Errorf("should hash alike:\n%s\n%s", a, b)
		}
	}
	differ := func(a, b string) {
		t.Helper()
		if hashText(t, a).Template == hashText(t, b).Template {
			t.Errorf("should not hash alike:\n%s\n%s", a, b)
		}
	}
	same(`{"spec":{"affinity":{"podAffinity":{}}}}`, `{}`)
	same(`{"spec":{"dnsConfig":{"options":[]}}}`, `{"spec":null}`)
	same(`{"spec":{"overhead":{"m":"1024Mi"}}}`, `{"spec":{"overhead":{"m":"1073741824"}}}`)
	same(`{"metadata":{"labels":{"tapp_template_hash_key":"1","tapp_uniq_hash_key":"2"}}}`, `{}`)

	const spread = `{"spec":{"topologySpreadConstraints":[{"topologyKey":"z"%s}]}}`
	differ(fmt.Sprintf(spread, `,"labelSelector":{}`), fmt.Sprintf(spread, ``))
	const term = `{"spec":{"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"z"%s}]}}}}`
	differ(fmt.Sprintf(term, `,"namespaceSelector":{}`), fmt.Sprintf(term, ``))
	differ(fmt.Sprintf(term, `,"labelSelector":{}`), fmt.Sprintf(term, ``))
	const claim = `{"spec":{"volumes":[{"name":"v","ephemeral":{"volumeClaimTemplate":{"spec":{"accessModes":["ReadWriteOnce"]%s}}}}]}}`
	differ(fmt.Sprintf(claim, `,"storageClassName":""`), fmt.Sprintf(claim, ``))
	same(fmt.Sprintf(claim, `,"storageClassName":null`), fmt.Sprintf(claim, ``))
	for _, source := range []string{"downwardAPI", "projected", "configMap", "secret", "csi", "ephemeral", "hostPath"} {
		differ(`{"spec":{"volumes":[{"name":"v","`+source+`":{}}]}}`, `{"spec":{"volumes":[{"name":"v"}]}}`)
	}
	differ(`{"spec":{"automountServiceAccountToken":false}}`, `{}`)
	differ(`{"spec":{"terminationGracePeriodSeconds":0}}`, `{}`)
	differ(`{"spec":{"containers":[{"command":["a b"]}]}}`, `{"spec":{"containers":[{"command":["a","b"]}]}}`)
	differ(`{"spec":{"containers":[{"name":"a"},{"name":"b"}]}}`, `{"spec":{"containers":[{"name":"b"},{"name":"a"}]}}`)
	differ(`{"spec":{"newField":false}}`, `{}`)
}

// TestTemplateWithoutLabelsHasAHash: the original's fault 10. A template without
// labels got no hashes, and its instances never updated.
func TestTemplateWithoutLabelsHasAHash(t *testing.T) {
	a := hashText(t, `{"spec":{"containers":[{"name":"c","image":"a"}]}}`)
	b := hashText(t, `{"spec":{"containers":[{"name":"c","image":"b"}]}}`)
	if !IsOurs(a.Template) || !IsOurs(a.Uniq) || a.Template == b.Template || a.Uniq != b.Uniq {
		t.Errorf("%v and %v", a, b)
	}
}

// TestStampsDoNotCount: a template hashes alike before and after the webhook
// stamped its hashes on it, and stays as it is.
func TestStampsDoNotCount(t *testing.T) {
	template := readTemplate(t, "typical")
	before := mustHash(t, template)
	template.Labels[tappv1.LabelTemplateHash], template.Labels[tappv1.LabelUniqHash] = before.Template, before.Uniq
	if after := mustHash(t, template); after != before {
		t.Errorf("%v, stamped %v", before, after)
	}
	if len(template.Labels) != 5 {
		t.Errorf("hashing changed the labels: %v", template.Labels)
	}
	if h, err := Hash(nil); err != nil || h != hashText(t, `{}`) {
		t.Errorf("no template: %v, %v", h, err)
	}
}

func TestIsOurs(t *testing.T) {
	for hash, want := range map[string]bool{
		"v1-0123456789abcdef": true, "": false, "2473541281": false, "v1-": false, "v1-0123456789ABCDEF": false,
		"v1-0123456789abcde": false, "v1-0123456789abcdef0": false, "v2-0123456789abcdef": false, "0123456789abcdef": false,
	} {
		if IsOurs(hash) != want {
			t.Errorf("IsOurs(%q) is %t", hash, !want)
		}
	}
}

// TestHashProperties: how a template is spelled does not change its hash, and the
// way through the Kubernetes types neither.
func TestHashProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := drawObject(t, schemaType("PodTemplateSpec"))
		hashes, err := HashRaw(tree)
		if err != nil {
			t.Fatal(err)
		}
		other := respell(t, schemaType("PodTemplateSpec"), tree).(map[string]any)
		if again, err := HashRaw(other); err != nil || again != hashes {
			t.Errorf("%v, and spelled in another way %v, %v\n%s\n%s", hashes, again, err, text(t, tree), text(t, other))
		}
		template := &corev1.PodTemplateSpec{}
		if err := json.Unmarshal(text(t, tree), template); err != nil {
			t.Fatal(err)
		}
		if typed, err := Hash(template); err != nil || typed != hashes {
			t.Errorf("%v, through the types %v, %v\n%s", hashes, typed, err, text(t, tree))
		}
		if whole, err := HashWhole(template); err != nil || whole != hashes.Template {
			t.Errorf("%v, and of the whole alone %s, %v\n%s", hashes, whole, err, text(t, tree))
		}
		shape, err := shapeOfTree(tree)
		if typed, typedErr := shapeHash(template); err != nil || typedErr != nil || typed != shape {
			t.Errorf("shape %s, %v, through the types %s, %v\n%s", shape, err, typed, typedErr, text(t, tree))
		}
		spec, _ := tree["spec"].(map[string]any)
		if unique, err := canonicalJSON("PodSpec", fromTree(withoutImages(spec))); err != nil || hashOf(unique) != hashes.Uniq {
			t.Errorf("cut out of the whole %s, rendered without images %s, %v\n%s", hashes.Uniq, hashOf(unique), err, text(t, tree))
		}
	})
}

// TestQuantities: ours have the value that Kubernetes gives them.
func TestQuantities(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[+-]?([0-9]{1,22}(\.[0-9]{0,12})?|\.[0-9]{1,12})(|n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?[0-9]{1,2}|e|x)`).Draw(t, "quantity")
		want, err := resource.ParseQuantity(s)
		got, ok := parseQuantity(s)
		if ok != (err == nil) {
			t.Fatalf("%q: Kubernetes says %v, we say %t", s, err, ok)
		}
		if !ok {
			return
		}
		rendered := string(got.append(nil))
		if back, err := resource.ParseQuantity(rendered); err != nil || back.Cmp(want) != 0 {
			t.Errorf("%q is %v, we say %s, %v", s, want.AsDec(), rendered, err)
		}
		if again, ok := parseQuantity(want.String()); !ok || again != got {
			t.Errorf("%q is %v, in Kubernetes' rendering %q %v", s, got, want.String(), again)
		}
	})
}

func hashText(t testing.TB, s string) Hashes {
	t.Helper()
	h, err := HashRaw(decodeTree(t, []byte(s)))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// FuzzHashRaw: whatever is in a template, it has a hash or an error, and the same
// one the next time.
func FuzzHashRaw(f *testing.F) {
	f.Add([]byte(`{"spec":{"containers":[{"image":1,"resources":{"limits":{"cpu":"1e999999"}}}],"overhead":{"a":"-.Ki"}}}`))
	f.Add([]byte(`{"metadata":{"labels":{"tapp_uniq_hash_key":null}},"spec":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var tree map[string]any
		if json.Unmarshal(data, &tree) != nil {
			return
		}
		h, err := HashRaw(tree)
		if err != nil {
			t.Fatalf("JSON without a hash: %v", err)
		}
		if again, _ := HashRaw(tree); again != h {
			t.Fatalf("%v, then %v", h, again)
		}
		var typed corev1.PodTemplateSpec
		if json.Unmarshal(data, &typed) == nil {
			if _, err := Hash(&typed); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func BenchmarkHashTemplate(b *testing.B) {
	template := readTemplate(b, "typical")
	b.ReportAllocs()
	for b.Loop() {
		mustHash(b, template)
	}
}

// TestUniqHashOfOnePass: cutting images out of what was rendered is the same as
// rendering without them.
func TestUniqHashOfOnePass(t *testing.T) {
	for _, text := range []string{
		`{}`, `{"spec":null}`, `{"spec":7}`, `{"spec":{}}`, `{"spec":{"image":"a"}}`,
		`{"spec":{"containers":[]}}`, `{"spec":{"containers":[{"image":"a"}]}}`, `{"spec":{"containers":[null,{"image":"a","name":"b"}]}}`,
		`{"spec":{"containers":[{"args":["x"],"image":"a","name":"b"},{"args":["x"],"image":"a"},{"image":"","name":"c"}]}}`,
		`{"spec":{"containers":[{"image":7,"name":"b"},{"image":{"a":1},"name":"b","zero":[{"image":"stays"}]}]}}`,
		`{"spec":{"containers":[{"image":null,"name":"b"}],"ephemeralContainers":[{"image":"stays","name":"e"}],"initContainers":[{"image":"i","name":"i"}]}}`,
		`{"spec":{"containers":[{"env":[],"image":"a","lifecycle":{},"name":"b"}],"volumes":[{"image":{"reference":"stays"},"name":"v"}]}}`,
		`{"metadata":{"labels":{"image":"stays"}},"spec":{"containers":{"image":"no list"}}}`,
	} {
		template := decodeTree(t, []byte(text))
		spec, _ := template["spec"].(map[string]any)
		want, err := canonicalJSON("PodSpec", fromTree(withoutImages(spec)))
		if err != nil {
			t.Fatal(err)
		}
		whole, unique, err := canonicalTemplate(fromTree(template))
		if err != nil || string(unique) != string(want) {
			t.Errorf("%s:\n got %s, %v\nwant %s", text, unique, err, want)
		}
		if again, _ := canonicalJSON("PodTemplateSpec", fromTree(template)); string(whole) != string(again) {
			t.Errorf("%s: whole:\n got %s\nwant %s", text, whole, again)
		}
	}
}
