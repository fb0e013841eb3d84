package tapp

import "testing"

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
			`spec.templatePool[canary].metadata.labels: Invalid value: "app=other": spec.selector (app=web) does not match these labels, so that the template's pods would not belong to the TApp; give the template the labels of the selector`},
		{"misses one without labels", "templatePool: {canary: {}}",
			`spec.templatePool[canary].metadata.labels: Invalid value: "": spec.selector (app=web) does not match these labels, so that the template's pods would not belong to the TApp; give the template the labels of the selector`},
		{"of ids", "selector: {matchLabels: {tapp_instance_key: '0'}}",
			`spec.selector: Invalid value: "tapp_instance_key=0": every instance has its own value of this label; leave it out of the selector, and out of the labels of the templates`},
		{"of hashes", "selector: {matchExpressions: [{key: tapp_uniq_hash_key, operator: Exists}]}",
			`spec.selector: Invalid value: "tapp_uniq_hash_key": every update changes the value of this label; leave it out of the selector`},
	})
}
