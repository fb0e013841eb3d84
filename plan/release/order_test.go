package release

import (
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var (
	configRef     = Ref{"v1", "ConfigMap", "shop", "web"}
	deploymentRef = Ref{"apps/v1", "Deployment", "shop", "web"}
)

// upgrade to another content of the chart, and say what was done.
func (w *world) upgrade(content string, objects []Object, hooks ...Hook) []string {
	w.t.Helper()
	w.in.Want.Content, w.chart = content, &Rendered{Chart: "web-" + content, Objects: objects, Hooks: hooks}
	w.run()
	return w.said()
}

// What crds/ have is waited for before anything is recorded or applied.
func TestCRDsFirst(t *testing.T) {
	w := newWorld(t, &Rendered{Objects: objects(t, config), CRDs: objects(t, "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: as.x}\nspec: {group: x, scope: Namespaced, names: {kind: A}}\n")})
	w.in.Anywhere = true
	w.settle = func(Ref, *unstructured.Unstructured) {}
	p := w.run()
	crd := Ref{"apiextensions.k8s.io/v1", kindCRD, "", "as.x"}
	expect(t, "done", w.said(), []string{"create CustomResourceDefinition/as.x"})
	expect(t, "waits", p.Waits, []string{`release "web": CustomResourceDefinition "as.x" is not established yet`})
	if !slices.Contains(p.Polls, crd) {
		t.Errorf("it polls %v", p.Polls)
	}
	ready(crd, w.objects[crd])
	w.run()
	expect(t, "when it is established", w.said(), []string{"record 1 pending-install", "create ConfigMap/web", "record 1 deployed"})

	// Later versions of crds/ are not applied, and it outlives the release.
	w.objects[crd].SetLabels(map[string]string{"mine": "yes"})
	expect(t, "upgrade", w.upgrade("u1-b", objects(t, config)), []string{"record 2 pending-upgrade", "record 2 deployed", "record 1 superseded"})
	w.in.Want = nil
	w.run()
	expect(t, "uninstall", w.said(), []string{"record 2 uninstalling", "delete ConfigMap/web", "record 1 gone", "record 2 gone"})
	if w.objects[crd] == nil {
		t.Error("the CRD is gone, with all that it defines")
	}
}

// Objects go in the opposite order of their creation, and records when all of them are
// gone. What is being deleted is not taken for applied.
func TestOneAfterTheOther(t *testing.T) {
	w := newWorld(t, &Rendered{Objects: objects(t, config+deployment)})
	w.run()
	w.said()
	lingers := w.objects[configRef]
	lingers.SetDeletionTimestamp(new(metav1.Now()))
	expect(t, "an upgrade while an object is being deleted", w.upgrade("u1-b", objects(t, config+deployment)), []string{"record 2 pending-upgrade"})
	delete(w.objects, configRef)
	w.run()
	expect(t, "when it is gone", w.said(), []string{"create ConfigMap/web", "record 2 deployed", "record 1 superseded"})

	w.in.Want, w.linger = nil, true
	p := w.run()
	expect(t, "uninstall", w.said(), []string{"record 2 uninstalling", "delete Deployment/web", "delete ConfigMap/web"})
	if p.Gone || len(w.records) != 2 {
		t.Errorf("gone: %v, with %d records", p.Gone, len(w.records))
	}
	clear(w.objects)
	p = w.run()
	expect(t, "when they are gone", w.said(), []string{"record 1 gone", "record 2 gone"})
	if !p.Gone {
		t.Error("it is not gone")
	}
}

// What is to be kept stays, whether the chart says so or a user; and so does what somebody
// else has taken over.
func TestStays(t *testing.T) {
	kept := strings.Replace(config, "name: web", `name: web, annotations: {helm.sh/resource-policy: "Keep "}`, 1)
	for name, c := range map[string]struct {
		config string
		change func(*unstructured.Unstructured)
		stays  bool
	}{
		"as the chart says": {config: kept, stays: true},
		"as a user says": {config: config, stays: true, change: func(o *unstructured.Unstructured) {
			annotations := o.GetAnnotations()
			annotations[annotationPolicy] = policyKeep
			o.SetAnnotations(annotations)
		}},
		"another release has it": {config: config, stays: true, change: func(o *unstructured.Unstructured) {
			annotations := o.GetAnnotations()
			annotations[annotationReleaseName] = "other"
			o.SetAnnotations(annotations)
		}},
		"it lost the marks of helm": {config: config, change: func(o *unstructured.Unstructured) { o.SetAnnotations(nil) }},
		"as it was":                 {config: config},
	} {
		for _, how := range []string{"prune", "uninstall"} {
			t.Run(name+", "+how, func(t *testing.T) {
				w := newWorld(t, &Rendered{Objects: objects(t, c.config+deployment)})
				w.run()
				w.said()
				if c.change != nil {
					c.change(w.objects[configRef])
				}
				if how == "uninstall" {
					w.in.Want = nil
				} else {
					w.in.Want.Content, w.chart = "u1-b", &Rendered{Objects: objects(t, deployment)}
				}
				w.run()
				if stays := w.objects[configRef] != nil; stays != c.stays || slices.Contains(w.said(), "delete ConfigMap/web") == c.stays {
					t.Errorf("it stays: %v", stays)
				}
			})
		}
	}
}

// What a revision applied that failed is pruned by the next one, whether it was an upgrade or
// the first that was tried.
func TestFailedIsPruned(t *testing.T) {
	failing := func(ref Ref, o *unstructured.Unstructured) {
		ready(ref, o)
		if o.GetKind() == "Job" {
			o.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Failed", "status": "True"}}}
		}
	}
	for _, c := range []struct {
		event string
		first int // version that fails
	}{{"post-install", 1}, {"post-upgrade", 2}} {
		w := newWorld(t, &Rendered{Objects: objects(t, deployment)})
		if c.first > 1 {
			w.run()
		}
		w.said()
		w.settle = failing
		w.upgrade("u1-b", objects(t, config+deployment), hook(t, "job", 0, nil, c.event))
		if w.records[c.first].Status != Failed || w.objects[configRef] == nil {
			t.Fatalf("record %d is %s, objects: %v", c.first, w.records[c.first].Status, slices.Collect(maps.Keys(w.objects)))
		}
		said := w.upgrade("u1-c", objects(t, deployment))
		if !slices.Contains(said, "delete ConfigMap/web") || w.records[c.first+1].Status != Deployed || w.objects[deploymentRef] == nil {
			t.Errorf("%s: %q", c.event, said)
		}
	}
}

// So many records are kept beside the deployed one, the newest.
func TestHistory(t *testing.T) {
	w := newWorld(t, &Rendered{Objects: objects(t, deployment)})
	w.run()
	w.said()
	for i, want := range [][]string{
		{"record 2 pending-upgrade", "record 2 deployed", "record 1 superseded"},
		{"record 3 pending-upgrade", "record 3 deployed", "record 2 superseded"},
		{"record 4 pending-upgrade", "record 4 deployed", "record 3 superseded", "record 1 gone"},
		{"record 5 pending-upgrade", "record 5 deployed", "record 4 superseded", "record 2 gone"},
	} {
		expect(t, "an upgrade", w.upgrade("u1-"+string(rune('b'+i)), objects(t, deployment)), want)
	}
}

// What is deployed is kept as it is while the cluster refuses the next record, and while a
// kind of the next revision is not there yet. What the chart uses that is not done is told
// with the record.
func TestKeptMeanwhile(t *testing.T) {
	w := newWorld(t, &Rendered{Objects: objects(t, deployment)})
	w.run()
	w.said()
	w.in.Want.Content, w.in.Records, w.in.Fresh = "u1-b", []Record{w.records[1]}, true
	w.in.Rendered = &Rendered{Chart: "web-2", Objects: objects(t, deployment), Warnings: []string{"it calls lookup"}}
	w.in.Objects = map[Ref]*unstructured.Unstructured{deploymentRef: nil}
	steps := func() (out []string) {
		for _, s := range Compute(w.in).Steps {
			out = append(out, strings.TrimSpace(string(s.Op)+" "+s.Ref.Kind+" "+strings.Join(s.Warnings, "")))
		}
		return out
	}
	expect(t, "at first", steps(), []string{"CreateRecord Release it calls lookup"})
	w.in.Refused = map[Ref]string{RecordRef("web"): "too large"}
	expect(t, "when it is refused", steps(), []string{"CreateRecord Release it calls lookup", "Create Deployment"})
	expect(t, "said", stalls(Compute(w.in)), []string{`Refused: release "web": the cluster refuses Release "web": too large`})

	w.in.Refused, w.in.Anywhere = nil, true
	w.in.Rendered.CRDs = objects(t, "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: as.x}\nspec: {group: x, scope: Namespaced, names: {kind: A}}\n")
	w.in.Objects[Ref{"apiextensions.k8s.io/v1", kindCRD, "", "as.x"}] = &unstructured.Unstructured{Object: w.in.Rendered.CRDs[0].Content}
	expect(t, "while a kind is not established", steps(), []string{"Create Deployment"})
}
