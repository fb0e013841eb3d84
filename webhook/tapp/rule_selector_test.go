package tapp

import (
	"testing"

	"tkestack.io/tapp/webhook/rule"
)

func TestSelector(t *testing.T) {
	testRule(t, "Selector", []ruleCase{
		{"absent", "", ""},
		{"of labels", "selector: {matchLabels: {app: web}}", ""},
		{"of expressions", "selector: {matchExpressions: [{key: app, operator: In, values: [web, shop]}]}", ""},
		{"with hashes of tkestack/tapp", "selector: {matchLabels: {app: web, tapp_template_hash_key: '1', tapp_uniq_hash_key: '2'}}", ""},
		{"empty", "selector: {}", `spec.selector: Required value: an empty selector would select every pod of the namespace; name labels that all templates have`},
		{"of hashes alone", "selector: {matchLabels: {tapp_uniq_hash_key: '2'}}",
			`spec.selector: Required value: an empty selector would select every pod of the namespace; name labels that all templates have`},
		{"nothing to take it from", "template: {spec: {containers: [{name: web, image: 'web:1'}]}}",
			`spec.template.metadata.labels: Required value: the selector is taken from them; give the template a label, such as app: web`},
		{"unknown operator", "selector: {matchExpressions: [{key: app, operator: Is}]}",
			`spec.selector.matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator`},
		{"no values", "selector: {matchExpressions: [{key: app, operator: In}]}",
			`spec.selector.matchExpressions[0].values: Required value: must be specified when ` + "`operator` is 'In' or 'NotIn'"},
		{"misses a template", "templatePool: {canary: {metadata: {labels: {app: other, tapp_uniq_hash_key: v1-1}}}}",
			`spec.templatePool[canary].metadata.labels[app]: Invalid value: "other": spec.selector has app=web, so that the template's pods would not belong to the TApp; leave app out of spec.selector, or give the template app=web`},
		{"misses one without labels", "templatePool: {canary: {}}",
			`spec.templatePool[canary].metadata.labels[app]: Invalid value: "": spec.selector has app=web, so that the template's pods would not belong to the TApp; leave app out of spec.selector, or give the template app=web`},
		{"misses a template by one of several labels", "{selector: {matchLabels: {app: web, version: v1}}, template: {metadata: {labels: {app: web, version: v2}}}, templatePool: null}",
			`spec.template.metadata.labels[version]: Invalid value: "v2": spec.selector has version=v1, so that the template's pods would not belong to the TApp; leave version out of spec.selector, or give the template version=v1`},
		{"of ids", "selector: {matchLabels: {tapp_instance_key: '0'}}",
			`spec.selector: Invalid value: "tapp_instance_key=0": every instance has its own value of this label; leave it out of the selector, and out of the labels of the templates`},
		{"of hashes", "selector: {matchExpressions: [{key: tapp_uniq_hash_key, operator: Exists}]}",
			`spec.selector: Invalid value: "tapp_uniq_hash_key": every update changes the value of this label; leave it out of the selector`},
	})
}

// TestStoredSelector: it cannot change, so that a refusal tells how the label can.
func TestStoredSelector(t *testing.T) {
	stored := tapp(t, "{selector: {matchLabels: {app: web, version: v1}}, template: {metadata: {labels: {app: web, version: v2}}}, templatePool: null}")
	stored.ResourceVersion = "7"
	wantFindings(t, rule.Findings("Selector", judgeSelector(stored)),
		`spec.template.metadata.labels[version]: Invalid value: "v2": the stored spec.selector has version=v1 and cannot change, so that the template's pods would not belong to the TApp; `+
			`to have version change, delete the TApp with --cascade=orphan, and create it with a spec.selector without version: it adopts the running pods`)
}
