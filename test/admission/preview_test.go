//go:build cluster

package admission

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/gen"
)

// said is what kubectl prints, line by line, without the namespace.
func said(out string) []string { return strings.Split(tidy(out), "\n") }

// expect the lines of kubectl's output.
func expect(t *testing.T, out string, want ...string) {
	t.Helper()
	if got := said(out); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("kubectl says:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestPreview: an update says what will become of the instances, also when it is
// only tried.
func TestPreview(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	base := []gen.Option{gen.Replicas(6), gen.Pool("canary", gen.Image("demo:v2")), gen.Use("canary", 5)}
	apply := func(flag string, opts ...gen.Option) string {
		t.Helper()
		return r.KubectlWith(text(t, manifest("web", append(base, opts...)...)), "apply", flag, "--filename", "-")
	}
	expect(t, apply("--dry-run=none"), "tapp.apps.tkestack.io/web created")
	r.createPods(r.Get("web"))
	const stays = `Warning: 1 of 6 instances does not follow the change of spec.template, and stays on "canary" (5)`

	for name, c := range map[string]struct {
		opts []gen.Option
		want []string
	}{
		"nothing": {nil, nil},
		"image": {[]gen.Option{gen.Default(gen.Image("demo:v3"))}, []string{
			"Warning: 5 instances are updated in place (0-4): image of main from demo:v1 to demo:v3", stays,
		}},
		"image and environment": {[]gen.Option{gen.Default(gen.Image("demo:v3")), gen.Pool("canary", gen.Image("demo:v2"), gen.Env("LEVEL", "debug"))}, []string{
			"Warning: 5 instances are updated in place (0-4): image of main from demo:v1 to demo:v3",
			`Warning: 1 instance is recreated (5): template "canary" changed: spec.containers[main].env[LEVEL]`, stays,
		}},
		"label": {[]gen.Option{gen.Default(gen.Label("tier", "front"))}, []string{
			"Warning: 5 instances get other labels or annotations without a restart (0-4): only labels and annotations of the template changed", stays,
		}},
		"another template": {[]gen.Option{gen.Use("canary", 1)}, []string{
			"Warning: 1 instance is updated in place (1): image of main from demo:v1 to demo:v2",
		}},
		"kill and scale down": {[]gen.Option{gen.Killed(0, 2), gen.Replicas(4)}, []string{
			"Warning: spec.templates: instance 5 has an entry, and does not exist while spec.replicas is 4",
			"Warning: 2 instances are killed (0,2): spec.statuses says Killed",
			"Warning: 2 instances are removed (4-5): spec.replicas is 4",
		}},
		"scale up": {[]gen.Option{gen.Replicas(9)}, []string{
			"Warning: 3 instances are created (6-8): the instance has no pod",
		}},
		"only in place": {[]gen.Option{gen.Default(gen.Env("LEVEL", "debug")), gen.Policy("InPlaceOnly")}, []string{
			`Warning: 5 instances stay on their old template (0-4): template "default" changed: spec.containers[main].env[LEVEL]; spec.updateStrategy.inPlaceUpdate.policy is InPlaceOnly`, stays,
		}},
		"never in place": {[]gen.Option{gen.Default(gen.Image("demo:v3")), gen.Policy("ReCreate")}, []string{
			`Warning: 5 instances are recreated (0-4): template "default" changed, and spec.updateStrategy.inPlaceUpdate.policy is ReCreate`, stays,
		}},
		"paused": {[]gen.Option{gen.Default(gen.Image("demo:v3")), paused}, []string{
			"Warning: 5 instances are updated in place (0-4): image of main from demo:v1 to demo:v3", stays,
			"Warning: spec.paused is true: updates start when it is false, and pods that are lost until then come back as they were",
		}},
		"no-op status": {[]gen.Option{status("1", "Pending")}, []string{
			"Warning: spec.statuses[1]: Pending has no effect; Killed stops an instance, Running or no entry runs it",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			before := r.Get("web")
			last := "tapp.apps.tkestack.io/web configured (server dry run)"
			if name == "nothing" {
				last = "tapp.apps.tkestack.io/web unchanged (server dry run)"
			}
			expect(t, apply("--dry-run=server", c.opts...), append(c.want, last)...)
			if after := r.Get("web"); !equality.Semantic.DeepEqual(before, after) {
				t.Errorf("the dry run changed it")
			}
		})
	}
	expect(t, apply("--dry-run=none", gen.Default(gen.Image("demo:v3"))),
		"Warning: 5 instances are updated in place (0-4): image of main from demo:v1 to demo:v3", stays, "tapp.apps.tkestack.io/web configured")
	expect(t, r.Kubectl("scale", "--replicas=7", "tapp/web"),
		// What the last update began is still to be done.
		"Warning: 5 instances are updated in place (0-4): image of main from demo:v1 to demo:v3",
		"Warning: 1 instance is created (6): the instance has no pod",
		"tapp.apps.tkestack.io/web scaled")
}

// TestRestartOn: an annotation that asks for a restart recreates, and where that is
// forbidden admission says so.
func TestRestartOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	at := func(checksum string, opts ...gen.Option) string {
		annotated := func(t *corev1.PodTemplateSpec) { t.Annotations = map[string]string{"checksum/config": checksum} }
		return text(t, manifest("web", append(opts, gen.Replicas(3), gen.Default(annotated))...))
	}
	r.KubectlWith(at("1111"), "apply", "--filename", "-")
	r.createPods(r.Get("web"))
	expect(t, r.KubectlWith(at("2222", gen.Policy("InPlaceOnly")), "apply", "--dry-run=server", "--filename", "-"),
		"Warning: spec.template.metadata.annotations[checksum/config]: it changed, and nothing restarts, because spec.updateStrategy.inPlaceUpdate.policy is InPlaceOnly; kubectl tapp restart web restarts the instances",
		"Warning: 3 instances get other labels or annotations without a restart (0-2): only labels and annotations of the template changed",
		"tapp.apps.tkestack.io/web configured (server dry run)")
	expect(t, r.KubectlWith(at("2222"), "apply", "--filename", "-"),
		"Warning: 3 instances are recreated (0-2): annotation checksum/config changed, which asks for a restart",
		"tapp.apps.tkestack.io/web configured")
}

// TestVersionLabel: a version is no part of a selector that is left out, so that it can
// change; where a stored selector has it, the refusal says how it can.
func TestVersionLabel(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	at := func(version string) string {
		return text(t, withoutSelector("web", gen.Default(gen.Label("version", version))))
	}
	expect(t, r.KubectlWith(at("v1"), "apply", "--filename", "-"),
		"Warning: spec.selector: it was left out, and taken from the labels of spec.template: app=web. From now on they cannot change; give spec.selector for others. These can change: version",
		"tapp.apps.tkestack.io/web created")
	expect(t, r.KubectlWith(at("v2"), "apply", "--filename", "-"),
		"Warning: 3 instances are created (0-2): the instance has no pod",
		"tapp.apps.tkestack.io/web configured")
	stored := func(version string) string {
		other := manifest("other", gen.Default(gen.Label("version", version)))
		other.Spec.Selector.MatchLabels["version"] = "v1"
		return text(t, other)
	}
	r.KubectlWith(stored("v1"), "apply", "--filename", "-")
	out, err := r.TryKubectlWith(stored("v2"), "apply", "--filename", "-")
	if want := `spec.template.metadata.labels[version]: Invalid value: "v2": the stored spec.selector has version=v1 and cannot change, so that the template's pods would not belong to the TApp; ` +
		"to have version change, delete the TApp with --cascade=orphan, and create it with a spec.selector without version: it adopts the running pods"; err == nil || !strings.Contains(out, want) {
		t.Errorf("kubectl says:\n%s", out)
	}
}

// TestInitImages: they recreate or, where they may wait for the next pod, are patched.
func TestInitImages(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	at := func(image string, opts ...gen.Option) string {
		return text(t, manifest("web", append(opts, gen.Replicas(2), gen.Default(initContainer(image)))...))
	}
	r.KubectlWith(at("setup:1"), "apply", "--filename", "-")
	r.createPods(r.Get("web"))
	expect(t, r.KubectlWith(at("setup:2"), "apply", "--dry-run=server", "--filename", "-"),
		"Warning: 2 instances are recreated (0-1): image of init container setup from setup:1 to setup:2, which runs in new pods only",
		"tapp.apps.tkestack.io/web configured (server dry run)")
	nextStart := func(t *tappv1.TApp) { t.Spec.UpdateStrategy.InPlaceUpdate.InitImages = tappv1.InitImagesNextStart }
	expect(t, r.KubectlWith(at("setup:2", nextStart), "apply", "--filename", "-"),
		"Warning: spec.template.spec.initContainers[setup].image: an init container's new image takes effect when an instance's pod starts next; updating in place does not start it",
		"Warning: 2 instances are updated in place (0-1): image of setup from setup:1 to setup:2",
		"tapp.apps.tkestack.io/web configured")
}

// TestOverlap: two TApps whose selectors mean the pods of both.
func TestOverlap(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.KubectlWith(text(t, manifest("web")), "apply", "--filename", "-")
	expect(t, r.KubectlWith(text(t, manifest("web-two", gen.Default(gen.Label("app", "web"), gen.Label("tier", "two")))), "apply", "--filename", "-"),
		"Warning: spec.selector: it overlaps with that of TApp web; Services and budgets that use it mean the pods of both. Give each a label of its own",
		"tapp.apps.tkestack.io/web-two created")
	expect(t, r.KubectlWith(text(t, manifest("other")), "apply", "--filename", "-"), "tapp.apps.tkestack.io/other created")
}

// TestFleetPreview: a change of an AppSet says what will become of its instances in all
// clusters, in which stages, and what of its fields has not the effect that it seems to have.
func TestFleetPreview(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.KubectlWith(gated("AppSet", "web:1", staged), "apply", "--filename", "-")
	const tried = "appset.workload.dmall.com/web configured (server dry run)"
	for name, c := range map[string]struct {
		image, strategy string
		want            []string
	}{
		"nothing": {"web:1", staged, []string{"appset.workload.dmall.com/web unchanged (server dry run)"}},
		"image": {"web:2", staged, []string{
			"Warning: stage canary (member1): 1 instance is updated in place: image of web from web:1 to web:2; then it waits for a confirmation",
			"Warning: stage blue (member1): 2 instances are updated in place: image of web from web:1 to web:2", tried}},
		"paused": {"web:2", staged + ", paused: true", []string{
			"Warning: stage canary (member1): 1 instance is updated in place: image of web from web:1 to web:2; then it waits for a confirmation",
			"Warning: stage blue (member1): 2 instances are updated in place: image of web from web:1 to web:2",
			"Warning: spec.updateStrategy.paused is true: updates start when it is false", tried}},
		"budget that a silent cluster uses up": {"web:1", staged + ", maxUnavailable: 1, maxFailures: 1", []string{
			"Warning: spec.updateStrategy.maxFailures: a silent cluster uses maxUnavailable up with all of its instances, so that no rollout can pass it; set unreachableCounts to AsLastSeen to count them as they were seen last", tried}},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, r.KubectlWith(gated("AppSet", c.image, c.strategy), "apply", "--dry-run=server", "--filename", "-"), c.want...)
		})
	}
}
