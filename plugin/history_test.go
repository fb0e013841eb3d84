package plugin

import (
	"encoding/json"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/revision"
	"tkestack.io/tapp/plan/view"
)

// revisionOf makes a revision as the controller stores it.
func revisionOf(t *testing.T, name string, number int64, data string) view.Stored {
	t.Helper()
	r := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name}, Revision: number, Data: runtime.RawExtension{Raw: []byte(data)}}
	version, err := revision.Read(r)
	if err != nil {
		t.Fatal(err)
	}
	return view.Stored{ControllerRevision: r, Version: version}
}

func threeRevisions(t *testing.T) []view.Stored {
	t.Helper()
	const data = `{"spec":{"template":{}}}`
	return []view.Stored{revisionOf(t, "web-a", 2, data), revisionOf(t, "web-b", 5, data), revisionOf(t, "web-c", 10, data)}
}

// TestTarget: to which revision `undo` goes back.
func TestTarget(t *testing.T) {
	three := threeRevisions(t)
	for _, c := range []struct {
		name      string
		revisions []view.Stored
		update    string
		observed  int64
		to        string
		want, err string
	}{
		{"the one before", three, "web-c", 1, "", "web-b", ""},
		{"0 is the one before", three, "web-b", 1, "0", "web-a", ""},
		{"by number", three, "web-c", 1, "2", "web-a", ""},
		{"by name", three, "web-c", 1, "web-b", "web-b", ""},
		{"by number, not observed", three, "web-c", 0, "10", "web-c", ""},
		{"no such number", three, "web-c", 1, "3", "", `web has no revision "3": it has 2, 5, 10`},
		{"part of a name", three, "web-c", 1, "web", "", `web has no revision "web": it has 2, 5, 10`},
		{"at the first", three, "web-a", 1, "", "", "web has no earlier revision"},
		{"at an unknown one", three, "web-z", 1, "", "", "web has no earlier revision"},
		{"none", nil, "", 1, "", "", "web has no earlier revision"},
		{"none, by number", nil, "", 1, "1", "", "web has no revision yet"},
		{"not observed", three, "web-c", 0, "", "",
			"the controller has not seen generation 1 of web yet, so that the version before it cannot be told; give --to-revision"},
	} {
		tapp := webTApp(1, func(t *tappv1.TApp) { t.Status.UpdateRevision, t.Status.ObservedGeneration = c.update, c.observed })
		got, err := target(tapp, c.revisions, c.to)
		name := ""
		if got != nil {
			name = got.Name
		}
		if name != c.want || text(err) != c.err {
			t.Errorf("%s: %q, %v", c.name, name, err)
		}
	}
}

// TestRollback: the patch, and what it makes of the TApp.
func TestRollback(t *testing.T) {
	tapp := webTApp(3, func(t *tappv1.TApp) {
		t.Generation = 7
		t.Spec.Templates = map[string]string{"0": "canary"}
	})
	const template = `{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"web:0","fromTheFuture":1}]}}`
	for _, c := range []struct {
		name, spec, patch, rolling string
	}{
		{name: "a rolling template that the revision has", rolling: "a", spec: `{"template":` + template + `,"templatePool":{"a":{}},"defaultTemplateName":"default"}`,
			patch: `[{"op":"test","path":"/metadata/uid","value":"tapp"},{"op":"test","path":"/metadata/generation","value":7},` +
				`{"op":"add","path":"/spec/template","value":` + template + `},` +
				`{"op":"add","path":"/spec/templatePool","value":{"a":{}}},` +
				`{"op":"add","path":"/spec/templates","value":{}},{"op":"remove","path":"/spec/templates"}]`},
		{name: "one that it does not have", rolling: "canary", spec: `{"template":` + template + `,"templatePool":{"a":{}},"defaultTemplateName":"default"}`,
			patch: `[{"op":"test","path":"/metadata/uid","value":"tapp"},{"op":"test","path":"/metadata/generation","value":7},` +
				`{"op":"add","path":"/spec/template","value":` + template + `},` +
				`{"op":"add","path":"/spec/templatePool","value":{"a":{}}},` +
				`{"op":"add","path":"/spec/templates","value":{}},{"op":"remove","path":"/spec/templates"},` +
				`{"op":"remove","path":"/spec/updateStrategy/template"}]`},
		{name: "all", spec: `{"template":` + template + `,"templatePool":{"a":{}},"templates":{"1":"a"},"defaultTemplateName":"a"}`,
			patch: `[{"op":"test","path":"/metadata/uid","value":"tapp"},{"op":"test","path":"/metadata/generation","value":7},` +
				`{"op":"add","path":"/spec/template","value":` + template + `},` +
				`{"op":"add","path":"/spec/templatePool","value":{"a":{}}},{"op":"add","path":"/spec/templates","value":{"1":"a"}},` +
				`{"op":"add","path":"/spec/defaultTemplateName","value":"a"}]`},
		{name: "the default's name need not be written", spec: `{"template":` + template + `,"defaultTemplateName":"default"}`,
			patch: `[{"op":"test","path":"/metadata/uid","value":"tapp"},{"op":"test","path":"/metadata/generation","value":7},` +
				`{"op":"add","path":"/spec/template","value":` + template + `},` +
				`{"op":"add","path":"/spec/templatePool","value":{}},{"op":"remove","path":"/spec/templatePool"},` +
				`{"op":"add","path":"/spec/templates","value":{}},{"op":"remove","path":"/spec/templates"}]`},
	} {
		r := revisionOf(t, "web-1", 1, `{"spec":`+c.spec+`}`)
		tapp.Spec.UpdateStrategy.Template = c.rolling
		patch, err := rollback(tapp, &r)
		if err != nil || string(patch) != c.patch {
			t.Errorf("%s: %v, it is\n%s\nand should be\n%s", c.name, err, patch, c.patch)
			continue
		}
		after := &tappv1.TApp{}
		if err := patchLocally(tapp, after, types.JSONPatchType, patch); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if changes, err := view.Summary(revision.Of(after), r.Version); err != nil || changes != "nothing" {
			t.Errorf("%s: it differs from the revision: %s, %v", c.name, changes, err)
		}
		if *after.Spec.Replicas != 3 {
			t.Errorf("%s: replicas are %d", c.name, *after.Spec.Replicas)
		}
	}
}

// TestRollbackHolds: the patch fails if the TApp changed, or is another one.
func TestRollbackHolds(t *testing.T) {
	r := revisionOf(t, "web-1", 1, `{"spec":{"template":{}}}`)
	patch, err := rollback(webTApp(1), &r)
	if err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(*tappv1.TApp){
		"generation": func(t *tappv1.TApp) { t.Generation++ },
		"uid":        func(t *tappv1.TApp) { t.UID = "another" },
	} {
		if err := patchLocally(webTApp(1, edit), &tappv1.TApp{}, types.JSONPatchType, patch); err == nil {
			t.Errorf("%s: the patch was applied", name)
		}
	}
	r.Data.Raw = []byte("{")
	if _, err := rollback(webTApp(1), &r); text(err) != "revision web-1 cannot be read: unexpected end of JSON input" {
		t.Error(err)
	}
}

// TestMergePatch: what --dry-run=client makes of the patches of single fields.
func TestMergePatch(t *testing.T) {
	tapp := webTApp(2, func(t *tappv1.TApp) {
		t.Spec.Statuses = map[string]tappv1.InstanceStatus{"0": tappv1.InstanceKilled, "1": tappv1.InstanceKilled}
	})
	w := &writing{dryRun: dryRunClient}
	after, err := w.mergeSpec(t.Context(), nil, tapp, map[string]any{"statuses": map[string]any{"0": nil}, "paused": true})
	if err != nil {
		t.Fatal(err)
	}
	changes, err := view.Changes("spec", tapp.Spec, after.Spec)
	got, _ := json.Marshal(changes)
	if want := `[{"path":"spec.paused","to":true},{"path":"spec.statuses[0]","from":"Killed"}]`; err != nil || string(got) != want {
		t.Errorf("%v: %s, want %s", err, got, want)
	}
}

func TestShort(t *testing.T) {
	long := json.RawMessage(`"` + string(make([]byte, 61)) + `"`)
	for want, c := range map[string][2]json.RawMessage{
		"a is new": {nil, long}, "a is gone": {long, nil}, "a differs": {long, long},
		"a: b -> <none>": {json.RawMessage(`"b"`), nil}, `a: "" -> 1`: {json.RawMessage(`""`), json.RawMessage("1")},
	} {
		c := view.FieldChange{Path: "a", From: c[0], To: c[1]}
		if got := c.Short(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestWritingValidates(t *testing.T) {
	for _, c := range []struct{ dryRun, output, err string }{
		{"none", "", ""}, {"client", "yaml", ""}, {"server", "name", ""},
		{"all", "", `--dry-run is "all"; give none, client or server`},
		{"none", "wide", `--output is "wide"; give name, json or yaml`},
	} {
		if err := (&writing{dryRun: c.dryRun, output: c.output}).validate(); text(err) != c.err {
			t.Errorf("%s, %s: %v", c.dryRun, c.output, err)
		}
	}
}
