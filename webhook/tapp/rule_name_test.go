package tapp

import (
	"strings"
	"testing"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/webhook/rule"
)

func TestName(t *testing.T) {
	for _, c := range []struct {
		name, tapp, spec, want string
	}{
		{"short", "web", "", ""},
		{"the longest", strings.Repeat("a", 61), "replicas: 10", ""},
		{"one too long", strings.Repeat("a", 61), "replicas: 11", "metadata.name: Invalid value: \"" + strings.Repeat("a", 61) +
			"\": instance 10 would have a pod name of 64 characters, and 63 are allowed; give the TApp a name of at most 60"},
		{"no instances yet", strings.Repeat("a", 61), "replicas: 0", ""},
		{"ids that begin at 100", strings.Repeat("a", 60), "{replicas: 1, ordinals: {start: 100}}", "metadata.name: Invalid value: \"" + strings.Repeat("a", 60) +
			"\": instance 100 would have a pod name of 64 characters, and 63 are allowed; give the TApp a name of at most 59"},
		{"dots", "web.shop", "", ""},
		{"dots in DNS names", "web.shop", "serviceName: web",
			`metadata.name: Invalid value: "web.shop": with spec.serviceName each pod's name is a DNS label, which has no dots; give the TApp a name without them`},
	} {
		t.Run(c.name, func(t *testing.T) {
			tapp, err := decodeTApp(objectNamed(t, c.tapp, c.spec))
			if err != nil {
				t.Fatal(err)
			}
			tappv1.Default(tapp)
			wantFindings(t, rule.Findings("Name", judgeName(tapp)), c.want)
		})
	}
}
