package tapp

import "testing"

func TestTemplateReferences(t *testing.T) {
	const advice = ": there is no such template; add it to spec.templatePool, or name another one (there are: default, canary)"
	testRule(t, "TemplateReferences", []ruleCase{
		{"good", "{templates: {'0': canary, '7': default, '1': ''}, defaultTemplateName: canary, updateStrategy: {template: default}}", ""},
		{"of an instance", "templates: {'10': b, '9': a}", "spec.templates[9]: Not found: \"a\"" + advice + "\nspec.templates[10]: Not found: \"b\"" + advice},
		{"of what is no instance", "templates: {'01': a}", ""},
		{"default", "defaultTemplateName: blue", `spec.defaultTemplateName: Not found: "blue"` + advice},
		{"the tutorial's spelling", "DefaultTemplateName: blue", `spec.defaultTemplateName: Not found: "blue"` + advice},
		{"rolling", "updateStrategy: {template: blue}", `spec.updateStrategy.template: Not found: "blue"` + advice},
		{"many templates", "{templatePool: {a: {}, b: {}, c: {}, d: {}, e: {}, f: {}}, defaultTemplateName: x}",
			`spec.defaultTemplateName: Not found: "x": there is no such template; add it to spec.templatePool, or name another one (there are: default, a, b, c, d, e, ...)`},
	})
}
