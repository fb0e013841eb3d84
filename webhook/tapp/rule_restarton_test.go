package tapp

import (
	"testing"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

func TestRestartOn(t *testing.T) {
	const advice = "it is no key of an annotation; give one, such as checksum/config or checksum/*: * stands for any characters but /"
	on := func(entries string) string { return "updateStrategy: {restartOn: [" + entries + "]}" }
	testRule(t, "RestartOn", []ruleCase{
		{"absent", "", ""},
		{"empty", on(""), ""},
		{"none", on("None"), ""},
		{"keys and patterns", on("team, checksum/config, 'checksum/*', '*/checksum', 'my.org/*-hash', '*', '*/*'"), ""},
		{"none and others", on("None, team"), `spec.updateStrategy.restartOn[0]: Invalid value: "None": it means no annotation, and stands alone; leave it out, or leave out the others`},
		{"no key", on("'', 'a b', a/b/c, '[ab]', 'checksum/?', '-'"), `
spec.updateStrategy.restartOn[0]: Invalid value: "": ` + advice + `
spec.updateStrategy.restartOn[1]: Invalid value: "a b": ` + advice + `
spec.updateStrategy.restartOn[2]: Invalid value: "a/b/c": ` + advice + `
spec.updateStrategy.restartOn[3]: Invalid value: "[ab]": ` + advice + `
spec.updateStrategy.restartOn[4]: Invalid value: "checksum/?": ` + advice + `
spec.updateStrategy.restartOn[5]: Invalid value: "-": ` + advice},
	})
}

// TestRestartForbidden: an annotation that asks for a restart, where nothing restarts.
func TestRestartForbidden(t *testing.T) {
	with := func(strategy, annotations string) *tappv1.TApp {
		return tapp(t, "{updateStrategy: {"+strategy+"}, templatePool: {canary: {metadata: {labels: {app: web}, annotations: {"+annotations+"}}, spec: {containers: [{name: web, image: 'web:1'}]}}}}")
	}
	const only = "inPlaceUpdate: {policy: InPlaceOnly}"
	for _, c := range []struct{ name, strategy, from, to, want string }{
		{"changed", only, "checksum/config: a", "checksum/config: b", "spec.templatePool[canary].metadata.annotations[checksum/config]: it changed, and nothing restarts, because spec.updateStrategy.inPlaceUpdate.policy is InPlaceOnly; kubectl tapp restart web restarts the instances"},
		{"same", only, "checksum/config: a", "checksum/config: a, team: b", ""},
		{"which means nothing here", only + ", restartOn: [None]", "checksum/config: a", "checksum/config: b", ""},
		{"where it restarts", "", "checksum/config: a", "checksum/config: b", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantLines(t, adviseRestartOn(with(c.strategy, c.to), with(c.strategy, c.from)), c.want)
		})
	}
	t.Run("new template", func(t *testing.T) {
		wantLines(t, adviseRestartOn(with(only, "checksum/config: b"), tapp(t, "templatePool: {}")), "")
		wantLines(t, adviseRestartOn(with(only, "checksum/config: b"), nil), "")
	})
}
