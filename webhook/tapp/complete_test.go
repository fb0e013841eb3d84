package tapp

import (
	"encoding/json"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	kjson "k8s.io/apimachinery/pkg/util/json"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/webhook/rule"
)

// completed is the object after the webhook, patched as the API server does.
func completed(t testingTB, object, old []byte) []byte {
	t.Helper()
	return patched(t, object, completionOf(t, object, old))
}

// completionOf an object as it comes.
func completionOf(t testingTB, object, old []byte) completion {
	t.Helper()
	c, err := complete(decodeTree(t, object), decodeTree(t, old))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func decodeTree(t testingTB, object []byte) (out map[string]any) {
	t.Helper()
	if len(object) > 0 {
		if err := kjson.Unmarshal(object, &out); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func patched(t testingTB, object []byte, c completion) []byte {
	t.Helper()
	text, err := c.render()
	if err != nil {
		t.Fatal(err)
	}
	if text == nil {
		return object
	}
	patch, err := jsonpatch.DecodePatch(text)
	if err != nil {
		t.Fatal(err)
	}
	out, err := patch.Apply(object)
	if err != nil {
		t.Fatalf("%v: %s of %s", err, text, object)
	}
	return out
}

// whole is a spec that says everything, so that nothing is added but hashes.
const whole = `
replicas: 3
revisionHistoryLimit: 10
progressDeadlineSeconds: 600
defaultTemplateName: default
selector: {matchLabels: {app: web}}
persistentVolumeClaimRetentionPolicy: {whenDeleted: Retain, whenScaled: Retain}
updateStrategy: {maxUnavailable: 1, forceUpdate: {maxUnavailable: 100%}, inPlaceUpdate: {policy: InPlaceIfPossible, drain: true}}
template:
  metadata: {labels: {app: web, tapp_template_hash_key: v1-15dbc23d39618201, tapp_uniq_hash_key: v1-dbbd0751d38a255a}}
  spec: {containers: [{name: web, image: "web:1"}]}
templatePool: null
`

// versioned is a complete template with labels of versions.
const versioned = "{metadata: {labels: {app: web, tier: front, version: v1, helm.sh/chart: web-1, tapp_template_hash_key: v1-0ea7b5e28b211b8f, tapp_uniq_hash_key: v1-dbbd0751d38a255a}}, spec: {containers: [{name: web, image: 'web:1'}]}}"

// TestComplete: the patch of each edit that admission makes, and nothing else.
func TestComplete(t *testing.T) {
	for _, c := range []struct {
		name, spec, old string
		want            string // operations, one a line
		warning         string
	}{
		{name: "complete", spec: whole},
		{name: "absent", spec: whole + "replicas: null", want: `add /spec/replicas 1`},
		{name: "empty text", spec: whole + "defaultTemplateName: ''", want: `add /spec/defaultTemplateName "default"`},
		{name: "absent parent", spec: whole + "updateStrategy: null", want: `
add /spec/updateStrategy {"maxUnavailable":1}
add /spec/updateStrategy/forceUpdate {"maxUnavailable":"100%"}
add /spec/updateStrategy/inPlaceUpdate {"policy":"InPlaceIfPossible"}
add /spec/updateStrategy/inPlaceUpdate/drain true`},
		{name: "empty parent", spec: whole + "persistentVolumeClaimRetentionPolicy: {whenScaled: Delete}", want: `add /spec/persistentVolumeClaimRetentionPolicy/whenDeleted "Retain"`},
		{name: "selector", spec: whole + "selector: null", want: `add /spec/selector {"matchLabels":{"app":"web"}}`,
			warning: "spec.selector: it was left out, and taken from the labels of spec.template: app=web. From now on they cannot change; give spec.selector for others"},
		{name: "selector without versions", spec: whole + "{selector: null, template: " + versioned + "}", want: `add /spec/selector {"matchLabels":{"app":"web","tier":"front"}}`,
			warning: "spec.selector: it was left out, and taken from the labels of spec.template: app=web,tier=front. From now on they cannot change; give spec.selector for others. These can change: helm.sh/chart, version"},
		{name: "selector with hashes of tkestack/tapp", spec: whole + "selector: {matchLabels: {app: web, tapp_uniq_hash_key: '12'}}", want: `add /spec/selector {"matchLabels":{"app":"web"}}`},
		{name: "selector of the stored object", spec: whole + "selector: null", old: whole + "selector: {matchLabels: {app: web, tier: front}}",
			want: `add /spec/selector {"matchLabels":{"app":"web","tier":"front"}}`},
		{name: "selector with a version of the stored object", spec: whole + "{selector: null, template: " + versioned + "}", old: whole + "{selector: {matchLabels: {app: web, version: v1}}, replicas: 2, template: " + versioned + "}",
			want: `add /spec/selector {"matchLabels":{"app":"web","version":"v1"}}`},
		{name: "another selector than stored", spec: whole + "selector: {matchLabels: {app: shop}}", old: whole},
		{name: "stale hash", spec: whole + "template: {metadata: {labels: {app: web, tapp_template_hash_key: v1-15dbc23d39618201, tapp_uniq_hash_key: v1-dbbd0751d38a255a}}, spec: {containers: [{name: web, image: 'web:2'}]}}",
			want: `add /spec/template/metadata/labels/tapp_template_hash_key "v1-3589ec96060f5830"`},
		{name: "template without metadata", spec: whole + "templatePool: {a~/b: {spec: {containers: [{name: web, image: 'web:1'}]}}}", want: `
add /spec/templatePool/a~0~1b/metadata {"labels":{"tapp_template_hash_key":"v1-b60e34ee58722c6e"}}
add /spec/templatePool/a~0~1b/metadata/labels/tapp_uniq_hash_key "v1-dbbd0751d38a255a"`},
		{name: "legacy spelling", spec: whole + "{defaultTemplateName: null, DefaultTemplateName: canary}", want: `
remove /spec/DefaultTemplateName
add /spec/defaultTemplateName "canary"`, warning: "spec.DefaultTemplateName: this spelling is deprecated, and its value was moved; write defaultTemplateName"},
		{name: "legacy spelling of an update", spec: whole + "DefaultTemplateName: canary", old: whole, want: `
remove /spec/DefaultTemplateName
add /spec/defaultTemplateName "canary"`, warning: "spec.DefaultTemplateName: this spelling is deprecated, and its value was moved; write defaultTemplateName"},
		{name: "empty legacy spelling", spec: whole + "DefaultTemplateName: ''", want: `remove /spec/DefaultTemplateName`},
		{name: "unused templates stay", spec: whole + "templatePool: {old: {}}", want: `
add /spec/templatePool/old/metadata {"labels":{"tapp_template_hash_key":"v1-44136fa355b3678a"}}
add /spec/templatePool/old/metadata/labels/tapp_uniq_hash_key "v1-44136fa355b3678a"`},
		{name: "unused templates", spec: whole + "{templatePool: {old: {}, a: 1, b: 1, c: 1}, templates: {'0': a}, defaultTemplateName: b, updateStrategy: {template: c, maxUnavailable: 1, forceUpdate: {maxUnavailable: 1}, inPlaceUpdate: {policy: ReCreate, drain: true}}, autoDeleteUnusedTemplate: true}",
			want: `remove /spec/templatePool/old`},
		{name: "what the schema will reject", spec: "{replicas: many, updateStrategy: rolling, template: web, templatePool: [], templates: 1, selector: app, DefaultTemplateName: 1, persistentVolumeClaimRetentionPolicy: []}", want: `
add /spec/revisionHistoryLimit 10
add /spec/progressDeadlineSeconds 600
add /spec/defaultTemplateName "default"`},
		{name: "update that leaves the spec alone", spec: "replicas: 3", old: "replicas: 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			// The last one of equal keys counts.
			var old []byte
			if c.old != "" {
				old = object(t, lastOnes(c.old))
			}
			got := completionOf(t, object(t, lastOnes(c.spec)), old)
			var lines []string
			for _, e := range got.Patch {
				lines = append(lines, strings.TrimSpace(e.Op+" "+e.Path+" "+string(e.Value)))
			}
			wantLines(t, lines, c.want)
			wantLines(t, got.Warnings.Texts, c.warning)
		})
	}
}

// lastOnes makes one object of a YAML object and the fields that follow it, which
// count more.
func lastOnes(text string) string {
	if rest, ok := strings.CutPrefix(text, whole); ok && rest != "" {
		if !strings.HasPrefix(rest, "{") {
			rest = "{" + rest + "}"
		}
		return merged(whole, rest)
	}
	return text
}

// TestDeletedIsLeftAlone: the finalizers of a TApp that is being deleted can be
// removed, and nothing else has to be done.
func TestDeletedIsLeftAlone(t *testing.T) {
	gone := strings.Replace(string(object(t, "replicas: 4")), `"name":"web"`, `"name":"web","deletionTimestamp":"2026-01-01T00:00:00Z"`, 1)
	if c := completionOf(t, []byte(gone), object(t, "")); len(c.Patch) > 0 {
		t.Errorf("patch %v", c.Patch)
	}
}

// TestContradiction: two spellings with two values mean nothing.
func TestContradiction(t *testing.T) {
	const want = `spec.DefaultTemplateName: Invalid value: "canary": it contradicts spec.defaultTemplateName, which is "default"; keep that one, and leave DefaultTemplateName out`
	for name, old := range map[string][]byte{"created": nil, "updated": object(t, "defaultTemplateName: other")} {
		t.Run(name, func(t *testing.T) {
			c := completionOf(t, object(t, "{defaultTemplateName: default, DefaultTemplateName: canary}"), old)
			wantFindings(t, rule.Findings("LegacyName", c.Denied), want)
		})
	}
}

// TestUnknownFieldsSurvive: fields and numbers that no Go type here could hold.
func TestUnknownFieldsSurvive(t *testing.T) {
	in := strings.Replace(string(object(t, "")), `"replicas":3`, `"replicas":3,"newer":{"big":12345678901234567890,"small":1.10,"list":[null]}`, 1)
	out := string(completed(t, []byte(in), nil))
	if !strings.Contains(out, `"newer":{"big":12345678901234567890,"small":1.10,"list":[null]}`) {
		t.Errorf("it is now %s", out)
	}
}

// TestDefaultsAreComplete: what admission stores has every default of the API but
// the one that follows another field.
func TestDefaultsAreComplete(t *testing.T) {
	got, err := decodeTApp(completed(t, object(t, ""), nil))
	if err != nil {
		t.Fatal(err)
	}
	want := got.DeepCopy()
	tappv1.Default(want)
	want.Spec.UpdateStrategy.Template = ""
	has, _ := json.Marshal(got.Spec)
	should, _ := json.Marshal(want.Spec)
	if string(has) != string(should) {
		t.Errorf("it stores\n%s\nand not\n%s", has, should)
	}
}
