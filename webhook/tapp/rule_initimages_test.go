package tapp

import (
	"testing"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

func TestInitImages(t *testing.T) {
	inPlace := "initImages: NextStart"
	with := func(containers string) *tappv1.TApp {
		return tapp(t, "{updateStrategy: {inPlaceUpdate: {"+inPlace+"}}, templatePool: {canary: {metadata: {labels: {app: web}}, spec: {initContainers: ["+containers+"]}}}}")
	}
	const warning = "spec.templatePool[canary].spec.initContainers[setup].image: an init container's new image takes effect when an instance's pod starts next; updating in place does not start it"
	for _, c := range []struct{ name, from, to, want string }{
		{"same", "{name: setup, image: 'setup:1'}", "{name: setup, image: 'setup:1'}", ""},
		{"new image", "{name: setup, image: 'setup:1'}", "{name: setup, image: 'setup:2'}", warning},
		{"new container", "{name: setup, image: 'setup:1'}", "{name: other, image: 'setup:2'}", ""},
		{"sidecar", "{name: setup, image: 'setup:1', restartPolicy: Always}", "{name: setup, image: 'setup:2', restartPolicy: Always}", ""},
	} {
		t.Run(c.name, func(t *testing.T) { wantLines(t, adviseInitImages(with(c.to), with(c.from)), c.want) })
	}
	for strategy, want := range map[string]string{"": "", "policy: ReCreate, initImages: NextStart": "", "policy: InPlaceOnly": warning, "policy: InPlaceOnly, initImages: ReCreate": warning} {
		t.Run(strategy, func(t *testing.T) {
			inPlace = strategy
			wantLines(t, adviseInitImages(with("{name: setup, image: 'setup:2'}"), with("{name: setup, image: 'setup:1'}")), want)
		})
	}
	inPlace = "initImages: NextStart"
	t.Run("new template", func(t *testing.T) {
		wantLines(t, adviseInitImages(with("{name: setup, image: 'setup:2'}"), tapp(t, "templatePool: {}")), "")
		wantLines(t, adviseInitImages(with("{name: setup, image: 'setup:2'}"), nil), "")
	})
}
