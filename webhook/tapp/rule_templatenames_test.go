package tapp

import "testing"

func TestTemplateNames(t *testing.T) {
	const advice = ": a template's name has lower case letters, digits and dashes, at most 63, and begins and ends with a letter or digit; rename it, such as canary or v2"
	testRule(t, "TemplateNames", []ruleCase{
		{"good", "", ""},
		{"upper case", "templatePool: {Canary: {}}", `spec.templatePool[Canary]: Invalid value: "Canary"` + advice},
		{"dots", "templatePool: {v1.2: {}}", `spec.templatePool[v1.2]: Invalid value: "v1.2"` + advice},
		{"empty", "templatePool: {'': {}}", `spec.templatePool[]: Invalid value: ""` + advice},
		{"reserved", "templatePool: {default: {}}", `spec.templatePool[default]: Invalid value: "default": this name belongs to spec.template; give the template another one`},
	})
}
