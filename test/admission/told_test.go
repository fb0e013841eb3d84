//go:build cluster

package admission

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"tkestack.io/tapp/test/gen"
)

// warnings of kubectl's output that have all these words.
func warnings(out string, words ...string) (found []string) {
	for _, line := range said(out) {
		missing := func(w string) bool { return !strings.Contains(line, w) }
		if strings.HasPrefix(line, "Warning: ") && !slices.ContainsFunc(words, missing) {
			found = append(found, line)
		}
	}
	return found
}

// pool is a TApp of game servers with a template for each zone: four instances in zone a, two in zone b. All its pods
// are Ready when it returns.
func (r *rig) pool(t *testing.T, opts ...gen.Option) []gen.Option {
	t.Helper()
	base := append([]gen.Option{gen.Replicas(6), gen.NoDrain(), gen.Pool("zone-a"), gen.Pool("zone-b"), gen.Use("zone-a", 0, 1, 2, 3), gen.Use("zone-b", 4, 5),
		gen.MaxUnavailable("1")}, opts...)
	r.KubectlWith(text(t, manifest("arena", base...)), "apply", "--filename", "-")
	r.createPods(r.Get("arena"))
	for id := range 6 {
		r.WaitPod(fmt.Sprintf("arena-%d", id), "is Ready", func(p *corev1.Pod) string {
			for _, c := range p.Status.Conditions {
				if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
					return ""
				}
			}
			return "not yet"
		})
	}
	return base
}

// TestForcedUpdatesAtOnce: where forced updates take several serving instances at once, apply says how many, and which
// field allows it; where a budget holds, it does not. Reported of others: openkruise/kruise-game#111.
func TestForcedUpdatesAtOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		opts []gen.Option
		want string // "": no word of at once
	}{
		"by default":        {nil, "4 of 6 instances at once (of 0-3): spec.updateStrategy.forceUpdate.maxUnavailable is 100%"},
		"half of them":      {[]gen.Option{gen.ForceMaxUnavailable("50%")}, "3 of 6 instances at once (of 0-3): spec.updateStrategy.forceUpdate.maxUnavailable is 50%"},
		"one after another": {[]gen.Option{gen.ForceMaxUnavailable("1")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			base := r.pool(t, c.opts...)
			out := r.KubectlWith(text(t, manifest("arena", append(base, gen.Pool("zone-a", gen.Image("demo:v2")))...)), "apply", "--dry-run=server", "--filename", "-")
			if told := len(warnings(out, "at once")) > 0; told != (c.want != "") || c.want != "" && len(warnings(out, c.want)) == 0 {
				t.Errorf("want %q: %s", c.want, out)
			}
		})
	}
}

// TestInstancesOfOtherTemplates: a change of spec.template says which instances do not follow it. Reported of others:
// tkestack/tke#993.
func TestInstancesOfOtherTemplates(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	at := func(opts ...gen.Option) string {
		return text(t, manifest("edge", append([]gen.Option{gen.Pool("canary", gen.Image("demo:v2")), gen.Use("canary", 0)}, opts...)...))
	}
	r.KubectlWith(at(), "apply", "--filename", "-")
	r.createPods(r.Get("edge"))
	out := r.KubectlWith(at(gen.Default(gen.Image("demo:v3"))), "apply", "--dry-run=server", "--filename", "-")
	if len(warnings(out, `1 of 3 instances does not follow the change of spec.template, and stays on "canary" (0)`)) == 0 {
		t.Errorf("nothing says that instance 0 stays: %s", out)
	}
	out = r.KubectlWith(at(gen.MaxUnavailable("2")), "apply", "--dry-run=server", "--filename", "-")
	if found := warnings(out, "canary"); len(found) > 0 {
		t.Errorf("the template did not change: %v", found)
	}
}
