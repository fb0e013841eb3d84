//go:build cluster

package admission

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/gen"
)

// stable are manifests to which admission adds much: what it adds must not make
// those who apply them disagree.
var stable = map[string]string{
	"plain": `
spec:
  replicas: 2
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "web:1"}]}}
`,
	"nothing but a template": `
spec:
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "web:1"}]}}
`,
	"everything": `
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "web:1", resources: {requests: {cpu: "0.5"}}}]}}
  templatePool:
    canary: {metadata: {labels: {app: web, tier: canary}}, spec: {containers: [{name: web, image: "web:2"}]}}
  templates: {"0": canary}
  defaultTemplateName: default
  statuses: {"1": Killed}
  updateStrategy: {template: canary, maxUnavailable: 30%, forceUpdate: {maxUnavailable: 2}, inPlaceUpdate: {policy: ReCreate, drain: false}}
  revisionHistoryLimit: 3
  progressDeadlineSeconds: 60
  persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}
`,
	"the tutorial's spelling": `
spec:
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "web:1"}]}}
  templatePool:
    canary: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "web:2"}]}}
  DefaultTemplateName: canary
`,
	"unused templates": `
spec:
  autoDeleteUnusedTemplate: true
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "web:1"}]}}
  templatePool:
    canary: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "web:2"}]}}
    old: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "web:0"}]}}
  templates: {"0": canary}
`,
	"exported from tkestack/tapp": `
spec:
  replicas: 1
  selector: {matchLabels: {app: web, tapp_template_hash_key: "1234567890", tapp_uniq_hash_key: "987654321"}}
  template:
    metadata: {labels: {app: web, tapp_template_hash_key: "1234567890", tapp_uniq_hash_key: "987654321"}, creationTimestamp: null}
    spec: {containers: [{name: web, image: "web:1", resources: {}}]}
  updateStrategy: {}
`,
}

func named(spec string) string {
	return "apiVersion: apps.tkestack.io/v1\nkind: TApp\nmetadata: {name: web}" + spec
}

// apply by server-side apply, as Argo CD and Flux do.
func (r *rig) applyAs(manager, manifest string, flags ...string) string {
	r.Helper()
	return r.KubectlWith(manifest, append([]string{"apply", "--server-side", "--field-manager", manager, "--filename", "-"}, flags...)...)
}

// rewritten are those manifests of which admission changes what they say, rather
// than add to it. What it changed belongs to who applied it first, so that a second
// manager has to insist, as Argo CD and Flux always do; and who insisted last owns
// it, which changes the object's managedFields, and nothing else.
var rewritten = map[string]bool{"the tutorial's spelling": true, "unused templates": true, "exported from tkestack/tapp": true}

// TestOneFieldManager: a tool that applies the same manifest again changes nothing,
// not even the object's version.
func TestOneFieldManager(t *testing.T) {
	for name, spec := range stable {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.applyAs("argocd-controller", named(spec))
			r.observe("web") // until then the status is a default, which is stored with the next write
			first := r.Get("web")
			for range 2 {
				r.applyAs("argocd-controller", named(spec))
			}
			if last := r.Get("web"); last.ResourceVersion != first.ResourceVersion {
				t.Errorf("applying again made version %s of %s:\n%s\nfrom\n%s", last.ResourceVersion, first.ResourceVersion, text(t, last), text(t, first))
			}
		})
	}
}

// TestTwoFieldManagers: two tools apply the same manifest in turns. Nobody gets a
// conflict, and nothing changes after the first time, not even the object's
// version once both are known.
func TestTwoFieldManagers(t *testing.T) {
	for name, spec := range stable {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			var flags []string
			if rewritten[name] {
				flags = []string{"--force-conflicts"}
			}
			r.applyAs("argocd-controller", named(spec), flags...)
			first := r.Get("web")
			r.applyAs("kustomize-controller", named(spec), flags...)
			both := r.Get("web")
			for range 2 {
				for _, manager := range []string{"argocd-controller", "kustomize-controller"} {
					r.applyAs(manager, named(spec), flags...)
				}
			}
			last := r.Get("web")
			if last.Generation != 1 || !equality.Semantic.DeepEqual(first.Spec, both.Spec) || !equality.Semantic.DeepEqual(first.Spec, last.Spec) {
				t.Errorf("generation %d is\n%s\nand was\n%s", last.Generation, text(t, last), text(t, first))
			}
			if last.ResourceVersion != both.ResourceVersion && !rewritten[name] {
				t.Errorf("applying again made version %s of %s", last.ResourceVersion, both.ResourceVersion)
			}
		})
	}
}

// TestOtherWaysToApply: client-side apply, and a PUT of the whole manifest, which
// leaves out all that admission added.
func TestOtherWaysToApply(t *testing.T) {
	for name, spec := range stable {
		for _, verb := range []string{"apply", "replace"} {
			t.Run(verb+" "+name, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, nil)
				r.KubectlWith(named(spec), "create", "--save-config", "--filename", "-")
				first := r.Get("web")
				for range 2 {
					r.KubectlWith(named(spec), verb, "--filename", "-")
				}
				last := r.Get("web")
				if last.Generation != 1 || !equality.Semantic.DeepEqual(first.Spec, last.Spec) {
					t.Errorf("%s made generation %d:\n%s\nfrom\n%s", verb, last.Generation, text(t, last), text(t, first))
				}
			})
		}
	}
}

// TestManagersShareATApp: one owns the manifest, another one the replicas; and
// what the first one takes out of the manifest gets its default again.
func TestManagersShareATApp(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	const template = "\n  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: \"web:%\"}]}}\n"
	at := func(image string) string { return strings.ReplaceAll(template, "%", image) }
	r.applyAs("git", named("\nspec:\n  updateStrategy: {maxUnavailable: 3}"+at("1")))
	r.applyAs("autoscaler", named("\nspec:\n  replicas: 7\n"), "--force-conflicts")
	before := r.Get("web")
	r.applyAs("git", named("\nspec:"+at("2")))
	after := r.Get("web")
	if *after.Spec.Replicas != 7 || after.Spec.Template.Spec.Containers[0].Image != "web:2" || *after.Spec.UpdateStrategy.MaxUnavailable != intstr.FromInt32(1) {
		t.Errorf("it is\n%s", text(t, after))
	}
	if before.Spec.Template.Labels[tappv1.LabelTemplateHash] == after.Spec.Template.Labels[tappv1.LabelTemplateHash] ||
		before.Spec.Template.Labels[tappv1.LabelUniqHash] != after.Spec.Template.Labels[tappv1.LabelUniqHash] {
		t.Errorf("a new image has to change the template hash alone: from %v to %v", before.Spec.Template.Labels, after.Spec.Template.Labels)
	}
	r.applyAs("autoscaler", named("\nspec:\n  replicas: 7\n"))
	if last := r.Get("web"); last.ResourceVersion != after.ResourceVersion {
		t.Errorf("the autoscaler changed it:\n%s", text(t, last))
	}
}

// TestLegacySpellingFollowsTheManifest: the value was moved when it was stored, and
// an edit of the manifest still counts.
func TestLegacySpellingFollowsTheManifest(t *testing.T) {
	for _, flags := range [][]string{{"apply", "--server-side"}, {"apply"}, {"replace"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			spec := stable["the tutorial's spelling"]
			r.KubectlWith(named(spec), "apply", "--server-side", "--field-manager=kubectl", "--filename", "-")
			edited := strings.Replace(spec, "DefaultTemplateName: canary", "DefaultTemplateName: default", 1)
			for range 2 {
				r.KubectlWith(named(edited), append(slices.Clone(flags), "--filename", "-")...)
				if got := r.Get("web").Spec; got.DefaultTemplateName != "default" || got.LegacyDefaultTemplateName != "" {
					t.Errorf("defaultTemplateName is %q, DefaultTemplateName %q", got.DefaultTemplateName, got.LegacyDefaultTemplateName)
				}
			}
		})
	}
}

// TestSelectorStays: a PUT of a manifest without a selector, whose labels were
// extended, does not change which pods are the TApp's.
func TestSelectorStays(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.KubectlWith(text(t, withoutSelector("web")), "create", "--filename", "-")
	r.KubectlWith(text(t, withoutSelector("web", gen.Default(gen.Label("tier", "front")))), "replace", "--filename", "-")
	got := r.Get("web").Spec.Selector.MatchLabels
	if len(got) != 1 || got["app"] != "web" {
		t.Errorf("the selector is %v", got)
	}
}

// tutorial is where the manifests of tkestack/tapp's tutorial are, as they were
// published. They name the namespace test.
const tutorial = "../e2e/testdata"

// TestTutorial: each of them is admitted, in the order of the tutorial, with the
// warnings that users see.
func TestTutorial(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(tutorial, "tutorial-*.yaml"))
	if err != nil || len(files) < 8 {
		t.Fatalf("%v, error %v", files, err)
	}
	r := newRig(t, nil)
	var said []string
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		manifest := strings.ReplaceAll(string(content), "namespace: test", "namespace: "+r.NS)
		if filepath.Base(file) >= "tutorial-3.7" { // from there on services and claims differ, which are immutable
			r.Kubectl("delete", "tapp", "example-tapp")
		}
		out := r.KubectlWith(manifest, "apply", "--validate=strict", "--filename", "-")
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, "Warning: ") && !strings.Contains(line, "created (") {
				said = append(said, filepath.Base(file)+": "+strings.TrimSpace(line))
			}
		}
	}
	const selector = "Warning: spec.selector: it was left out, and taken from the labels of spec.template: app=example-tapp. From now on they cannot change; give spec.selector for others"
	want := []string{
		"tutorial-3.2.1.yaml: " + selector,
		`tutorial-3.2.2.yaml: Warning: 1 of 3 instances does not follow the change of spec.template, and stays on "test" (1)`,
		`tutorial-3.4.1.yaml: Warning: 1 of 3 instances does not follow the change of spec.template, and stays on "test2" (1)`,
		"tutorial-3.7.yaml: " + selector,
		"tutorial-3.8.yaml: Warning: spec.DefaultTemplateName: this spelling is deprecated, and its value was moved; write defaultTemplateName",
		"tutorial-3.8.yaml: " + selector,
		"tutorial-3.9.yaml: " + selector,
	}
	if !slices.Equal(said, want) {
		t.Errorf("it warns:\n%s\nwant:\n%s", strings.Join(said, "\n"), strings.Join(want, "\n"))
	}
}
