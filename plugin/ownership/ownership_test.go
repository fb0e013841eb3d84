package ownership

import (
	"errors"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	image    = `.spec.template.spec.containers[name="web"].image`
	sidecar  = `.spec.template.spec.containers[name="log"].image`
	original = `{template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "web:2", command: [a, b]}], volumes: [{name: tmp, emptyDir: {}}]}}}`
	// undone is what undo writes: web:1, with a container that web:2 has no more.
	undone = `[{"op":"add","path":"/spec/template","value":{"metadata":{"labels":{"app":"web","tapp_template_hash_key":"v1-1"}},"spec":{"containers":[` +
		`{"name":"log","image":"log:1"},{"name":"web","image":"web:1","command":["a","b"]}],"volumes":[{"name":"tmp","emptyDir":{}}]}}},` +
		`{"op":"add","path":"/spec/templates","value":{}},{"op":"remove","path":"/spec/templates"}]`
)

func ofUndo() []string { return []string{"template", "templatePool", "templates"} }

// TestWrite: what is told before a write, who owns the fields after it, and that the next
// apply of the same manifest is no conflict and sets them back.
func TestWrite(t *testing.T) {
	withImage := func(image string) string { return strings.Replace(original, "web:2", image, 1) }
	helmOwns := "Note: helm owns spec.template.spec.containers[name=\"web\"].image; the next helm upgrade sets it back. To keep it, change the chart or its values as well."
	fields := fieldsOf(t)
	other := [][2]string{{"other", `{replicas: 2}`}}
	for _, c := range []struct {
		name string
		// applied are specs by the manager that applies them, in this order.
		applied [][2]string
		// hand is a patch by somebody before, and by whom.
		hand, by string
		patch    string
		adopt    []string
		notes    []string
		field    string
		owners   []string
		// next is what the first applier applies then, and spec the result.
		next, spec string
	}{
		{name: "undo of what helm applies", applied: [][2]string{{"helm", original}}, patch: undone, adopt: ofUndo(), notes: []string{helmOwns},
			field: image, owners: []string{"helm Apply"}, next: withImage("web:3"),
			spec: `{"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"command":["a","b"],"image":"web:3","name":"web"}],"volumes":[{"emptyDir":{},"name":"tmp"}]}}}`},
		{name: "what undo brings back goes with the next apply", applied: [][2]string{{"helm", original}}, patch: undone, adopt: ofUndo(), notes: []string{helmOwns},
			field: sidecar, owners: []string{"helm Apply"}, next: original,
			spec: `{"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"command":["a","b"],"image":"web:2","name":"web"}],"volumes":[{"emptyDir":{},"name":"tmp"}]}}}`},
		{name: "undo of what helm applies and upgrade wrote", applied: [][2]string{{"helm", original}}, hand: `{"templates":{"0":"canary"}}`, by: "kubectl-tapp",
			patch: undone, adopt: ofUndo(), notes: []string{helmOwns}, field: image, owners: []string{"helm Apply"}, next: original,
			spec: `{"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"command":["a","b"],"image":"web:2","name":"web"}],"volumes":[{"emptyDir":{},"name":"tmp"}]}}}`},
		{name: "what undo brings back beside another applier", applied: [][2]string{{"helm", original}, {"a", `{replicas: 2}`}}, patch: undone, adopt: ofUndo(), notes: []string{helmOwns},
			field: sidecar, owners: []string{"helm Apply"}, next: original,
			spec: `{"replicas":2,"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"command":["a","b"],"image":"web:2","name":"web"}],"volumes":[{"emptyDir":{},"name":"tmp"}]}}}`},
		{name: "undo of a template that nobody applies", applied: [][2]string{{"helm", `{replicas: 2}`}}, hand: `{"template":{"spec":{"containers":[{"name":"web","image":"web:2"}]}}}`, by: "kubectl-create",
			patch: undone, adopt: ofUndo(), field: sidecar, owners: []string{"kubectl-tapp Update"}, next: `{replicas: 3}`,
			spec: `{"replicas":3,"template":{"metadata":{"labels":{"app":"web","tapp_template_hash_key":"v1-1"}},"spec":{"containers":[{"image":"log:1","name":"log"},{"command":["a","b"],"image":"web:1","name":"web"}],"volumes":[{"emptyDir":{},"name":"tmp"}]}}}`},
		{name: "kill writes what nobody declares", applied: [][2]string{{"helm", `{replicas: 2}`}}, patch: `{"statuses":{"1":"Killed"}}`,
			field: ".spec.statuses.1", owners: []string{"kubectl-tapp Update"}, next: `{replicas: 3}`, spec: `{"replicas":3,"statuses":{"1":"Killed"}}`},
		{name: "kill beside what helm declares", applied: [][2]string{{"helm", `{statuses: {"0": Killed}}`}}, patch: `{"statuses":{"1":"Killed"}}`,
			field: ".spec.statuses.1", owners: []string{"kubectl-tapp Update"}, next: `{statuses: {"0": Running}}`, spec: `{"statuses":{"0":"Running","1":"Killed"}}`},
		{name: "start of what helm declares killed", applied: [][2]string{{"helm", `{replicas: 2, statuses: {"1": Killed}}`}}, patch: `{"statuses":{"1":null}}`,
			notes: []string{"Note: helm owns spec.statuses.1; the next helm upgrade sets it back. To keep it, change the chart or its values as well."},
			field: ".spec.statuses.1", next: `{replicas: 3, statuses: {"1": Killed}}`, spec: `{"replicas":3,"statuses":{"1":"Killed"}}`},
		{name: "start of what kill wrote", applied: [][2]string{{"helm", `{replicas: 2}`}}, hand: `{"statuses":{"1":"Killed"}}`, by: "kubectl-tapp",
			patch: `{"statuses":{"1":null}}`, field: ".spec.statuses.1", next: `{statuses: {"1": Killed}}`, spec: `{"statuses":{"1":"Killed"}}`},
		{name: "pause that nobody declares", applied: [][2]string{{"helm", `{replicas: 2}`}}, patch: `{"paused":true}`,
			field: ".spec.paused", owners: []string{"kubectl-tapp Update"}, next: `{replicas: 3}`, spec: `{"paused":true,"replicas":3}`},
		{name: "pause that helm declares", applied: [][2]string{{"helm", `{paused: false}`}}, patch: `{"paused":true}`,
			notes: []string{"Note: helm owns spec.paused; the next helm upgrade sets it back. To keep it, change the chart or its values as well."},
			field: ".spec.paused", owners: []string{"helm Apply"}, next: `{paused: false}`, spec: `{"paused":false}`},
		{name: "a template of an instance that helm declares", applied: [][2]string{{"helm", `{templates: {"0": a, "1": a}}`}}, patch: `{"templates":{"0":"b","1":"b","2":"b"}}`,
			notes: []string{"Note: helm owns spec.templates.0, spec.templates.1; the next helm upgrade sets them back. To keep them, change the chart or its values as well."},
			field: ".spec.templates.2", owners: []string{"kubectl-tapp Update"}, next: `{templates: {"0": c, "1": c}}`, spec: `{"templates":{"0":"c","1":"c","2":"b"}}`},
		{name: "many fields", applied: [][2]string{{"argocd-controller", `{templates: {"0": a, "1": a, "2": a, "3": a, "4": a}}`}},
			patch: `{"templates":{"0":"b","1":"b","2":"b","3":"b","4":"b"}}`,
			notes: []string{"Note: argocd-controller owns spec.templates.0, spec.templates.1, spec.templates.2 and 2 more fields; the next sync by Argo CD sets them back. To keep them, change its source as well."},
			field: ".spec.templates.4", owners: []string{"argocd-controller Apply"}, next: `{templates: {"0": c}}`, spec: `{"templates":{"0":"c"}}`},
		{name: "two that apply one field", applied: [][2]string{{"helm", original}, {"platform", `{template: {spec: {containers: [{name: web, image: "web:2"}]}}}`}}, patch: undone, adopt: ofUndo(),
			notes: []string{helmOwns, "Note: platform owns spec.template.spec.containers[name=\"web\"].image; its next apply sets it back. To keep it, change what it applies as well."},
			field: image, owners: []string{"helm Apply", "platform Apply"}, next: withImage("web:1"),
			spec: `{"template":{"metadata":{"labels":{"app":"web","tapp_template_hash_key":"v1-1"}},"spec":{"containers":[{"image":"log:1","name":"log"},{"command":["a","b"],"image":"web:1","name":"web"}],"volumes":[{"emptyDir":{},"name":"tmp"}]}}}`},
		{name: "what a client-side apply owns", applied: other, hand: `{"paused":false}`, by: "kubectl-client-side-apply", patch: `{"paused":true}`,
			notes: []string{"Note: kubectl-client-side-apply owns spec.paused; the next kubectl apply sets it back. To keep it, change the manifest as well."},
			field: ".spec.paused", owners: []string{"kubectl-tapp Update"}},
		{name: "what helm owns without applying it", applied: other, hand: `{"paused":false}`, by: "helm", patch: `{"paused":true}`,
			notes: []string{"Note: helm owns spec.paused; the next helm upgrade sets it back. To keep it, change the chart or its values as well."},
			field: ".spec.paused", owners: []string{"kubectl-tapp Update"}},
		{name: "what kubectl apply --server-side owns", applied: [][2]string{{"kubectl", `{paused: false}`}}, patch: `{"paused":true}`,
			notes: []string{"Note: kubectl owns spec.paused; the next kubectl apply sets it back. To keep it, change the manifest as well."},
			field: ".spec.paused", owners: []string{"kubectl Apply"}, next: `{paused: false}`, spec: `{"paused":false}`},
		{name: "what somebody wrote by hand", applied: other, hand: `{"paused":false}`, by: "kubectl-edit", patch: `{"paused":true}`, field: ".spec.paused", owners: []string{"kubectl-tapp Update"}},
		{name: "what Flux applies", applied: [][2]string{{"kustomize-controller", `{paused: false}`}}, patch: `{"paused":true}`,
			notes: []string{"Note: kustomize-controller owns spec.paused; the next reconciliation by Flux sets it back. To keep it, change its source as well.",
				"Note: Flux removes what managers write whose names begin with kubectl, as kubectl-tapp does, and its source lacks. To keep it, change its source as well, or repeat this with --field-manager=by-hand."},
			field: ".spec.paused", owners: []string{"kustomize-controller Apply"}, next: `{paused: false}`, spec: `{"paused":false}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, fields)
			for _, a := range c.applied {
				if err := s.apply(a[0], a[1]); err != nil {
					t.Fatal(err)
				}
			}
			if c.hand != "" {
				if _, err := s.patchAs(c.by, types.MergePatchType, []byte(`{"spec":`+c.hand+`}`), false); err != nil {
					t.Fatal(err)
				}
			}
			was, version := s.spec(), s.tapp.GetResourceVersion()
			if got := s.write(c.adopt, c.patch, true); !slices.Equal(got, c.notes) {
				t.Errorf("a dry run tells %q\nand should %q", got, c.notes)
			}
			if got := s.spec(); got != was || s.tapp.GetResourceVersion() != version {
				t.Errorf("a dry run changed it: %s", got)
			}
			if got := s.write(c.adopt, c.patch, false); !slices.Equal(got, c.notes) {
				t.Errorf("it tells %q\nand should %q", got, c.notes)
			}
			if got := s.owners(c.field); !slices.Equal(got, c.owners) {
				t.Errorf("%s is owned by %q, want %q", c.field, got, c.owners)
			}
			if c.next == "" {
				return
			}
			if err := s.apply(c.applied[0][0], c.next); err != nil {
				t.Errorf("the next apply: %v", err)
			}
			if got := s.spec(); got != c.spec {
				t.Errorf("after the next apply the spec is\n%s\nwant\n%s", got, c.spec)
			}
		})
	}
}

// TestMapsStay: what an applier declares beside what a command wrote and took back can be
// left out again.
func TestMapsStay(t *testing.T) {
	s := newServer(t, fieldsOf(t))
	for _, step := range []struct{ apply, patch, want string }{
		{apply: `{replicas: 2}`, want: `{"replicas":2}`},
		{patch: `{"statuses":{"1":"Killed"}}`, want: `{"replicas":2,"statuses":{"1":"Killed"}}`},
		{apply: `{replicas: 2, statuses: {"0": Killed}}`, want: `{"replicas":2,"statuses":{"0":"Killed","1":"Killed"}}`},
		{patch: `{"statuses":{"1":null}}`, want: `{"replicas":2,"statuses":{"0":"Killed"}}`},
		{apply: `{replicas: 2}`, want: `{"replicas":2}`},
	} {
		if step.apply == "" {
			s.write(nil, step.patch, false)
		} else if err := s.apply("helm", step.apply); err != nil {
			t.Fatal(err)
		}
		if got := s.spec(); got != step.want {
			t.Errorf("after %s%s the spec is %s, want %s", step.apply, step.patch, got, step.want)
		}
	}
}

// TestGiveBack: while the fields are given back, the object may change.
func TestGiveBack(t *testing.T) {
	const owns = "Note: helm owns spec.paused; the next helm upgrade sets it back. To keep it, change the chart or its values as well."
	fields := fieldsOf(t)
	for _, c := range []struct {
		name string
		// before a patch of this number, from the second on
		before func(s *server, n int) error
		notes  []string
		owners []string
	}{
		{"nothing happens", func(*server, int) error { return nil }, []string{owns}, []string{"helm Apply"}},
		{"somebody writes another field", func(s *server, n int) error {
			if n == 1 {
				return s.apply("platform", `{replicas: 5}`)
			}
			return nil
		}, []string{owns}, []string{"helm Apply"}},
		{"somebody takes the field", func(s *server, n int) error {
			if n != 1 {
				return nil
			}
			before := s.before
			s.before = nil
			defer func() { s.before = before }()
			for _, paused := range []string{"null", "true"} {
				if _, err := s.patchAs("kubectl-edit", types.MergePatchType, []byte(`{"spec":{"paused":`+paused+`}}`), false); err != nil {
					return err
				}
			}
			return nil
		}, []string{owns}, []string{"kubectl-edit Update"}},
		{"it changes all the time", func(s *server, n int) error { return s.conflict() },
			[]string{owns, "Note: it is written, and kubectl-tapp owns the fields now, because they could not be given back: Operation cannot be fulfilled on tapps.apps.tkestack.io \"web\": the object has been modified. " +
				"The next apply of them is a conflict, unless it is forced, as by helm upgrade --force-conflicts."}, []string{"kubectl-tapp Update"}},
		{"it is refused", func(*server, int) error { return errors.New("no") },
			[]string{owns, "Note: it is written, and kubectl-tapp owns the fields now, because they could not be given back: no. " +
				"The next apply of them is a conflict, unless it is forced, as by helm upgrade --force-conflicts."}, []string{"kubectl-tapp Update"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, fields)
			for manager, spec := range map[string]string{"helm": `{paused: false}`, "other": `{minReadySeconds: 1}`} {
				if err := s.apply(manager, spec); err != nil {
					t.Fatal(err)
				}
			}
			s.before = func(n int) error {
				if n == 0 {
					return nil
				}
				return c.before(s, n)
			}
			if got := s.write(nil, `{"paused":true}`, false); !slices.Equal(got, c.notes) {
				t.Errorf("it tells %q\nand should %q", got, c.notes)
			}
			if got := s.owners(".spec.paused"); !slices.Equal(got, c.owners) {
				t.Errorf("the field is owned by %q, want %q", got, c.owners)
			}
			if s.patches > 1+tries {
				t.Errorf("%d patches", s.patches)
			}
		})
	}
}

// TestUnread: entries that cannot be read hold no write up.
func TestUnread(t *testing.T) {
	bad := metav1.ManagedFieldsEntry{Manager: "helm", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1("{")}
	const want = "reading the fields of helm: "
	for _, entries := range [][2]Entries{{{bad}, nil}, {nil, {bad}}} {
		if _, err := Compare(entries[0], entries[1], "kubectl-tapp", nil); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := (&Taken{}).Return(Entries{bad}, "kubectl-tapp", nil); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
